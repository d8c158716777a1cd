// The fixed text of the page.
#pragma once

namespace sluice::bench {

inline constexpr const char* kIntroduction = R"(# Performance

<!-- Written by ./dev bench: change bench/, not this page. -->

Every figure on this page comes from one run of `./dev bench` on one machine. Times on another
machine differ; ratios differ less. They compare Sluice with the limits of the machine itself,
measured on tables of the same size and on the same kind of memory pages, and with the tools that
people use instead. The machine is shared with other work. So the programs or filters that are
compared take turns, and each ratio is the median of the ratios of all rounds. A command that was
far slower than the others in the first round ran only once. A *bar* is a limit that we set
ourselves; the table says which bars hold and which are missed.

- *observe / one line updated* is the time of a batched `observe` of one key, divided by the time
  to update one random cache line in a table of the same size.
- *In cache* means tables of up to 3 MiB, *out of cache* tables of 20 MiB or more.
- The *split-and-copy probe* only splits its input into lines and copies them: no program that
  handles lines can be much faster.
- The bar for peak memory is for reading a file. In a pipe, `sort` takes little memory, because it
  uses temporary files.

)";

inline constexpr const char* kOthers = R"(
## Not measured here

Tools that Debian 12 does not package were not measured: `huniq` and `runiq` (lines), and `qsv`
(`dedup` and `extdedup` for CSV). Redis with RedisBloom answers over a socket, so it cannot be
compared with a command that reads files.
)";

}  // namespace sluice::bench
