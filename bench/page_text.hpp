// What the page says besides what was measured.
#pragma once

namespace sluice::bench {

inline constexpr const char* kIntroduction = R"(# Performance

<!-- Written by ./dev bench: change bench/, not this page. -->

Every figure here is from one run of `./dev bench` on one machine, and says little about another:
ratios say more than times. They are to what the machine itself allows, measured over tables of the
same bytes on the same kind of pages, and to what people would use instead. All that is compared
takes turns, and ratios are medians over rounds of what was measured side by side, since the machine
is not ours alone; a command that was far behind in the first round ran once. A bar that is missed
stands here as missed.

)";

inline constexpr const char* kOthers = R"(
## Not measured here

What Debian 12 does not package is named without a figure, since none was measured here: `huniq` and
`runiq` (lines), `qsv` (`dedup` and `extdedup` of CSV). Redis with RedisBloom answers over a socket,
and is no peer of a command that reads files.
)";

}  // namespace sluice::bench
