// The fixed text of the page.
#pragma once

namespace sluice::bench {

inline constexpr const char* kIntroduction = R"(# Performance

<!-- Written by ./dev bench: change bench/, not this page. -->

Every figure on this page comes from one run of `./dev bench` on one machine. Times say little about
another machine; ratios say more. Ratios compare Sluice with what the machine itself allows (measured
over tables of the same size on the same kind of pages) and with the tools that people use instead.
What is compared takes turns, because the machine is shared, and each ratio is a median over rounds
measured side by side. A command that was far slower in the first round ran only once. A *bar* is a
limit that we set ourselves; the table says which bars hold and which are missed.

)";

inline constexpr const char* kOthers = R"(
## Not measured here

What Debian 12 does not package is named without figures, since nothing was measured: `huniq` and
`runiq` (lines), `qsv` (`dedup` and `extdedup` for CSV). Redis with RedisBloom answers over a socket,
so it cannot be compared with a command that reads files.
)";

}  // namespace sluice::bench
