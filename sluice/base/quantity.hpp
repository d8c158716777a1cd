// Quantities as people type and read them: counts, sizes, durations, probabilities.
//
// All of them read numbers alike: "1000000", "1_000_000", "1e6", "0.5", ".5". Parsing is strict: the
// whole text must be one quantity, without blanks or signs, and a value that is too large, or not a
// whole number of its unit, is refused rather than rounded. Every error is BadParameters with a
// sentence that names the flag, the text and what would be right. No locale is consulted.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sluice {

// `flag` is what the error names, e.g. "--expect".

// "1000", "10k", "1.5M", "2G": k = 10^3, M = 10^6, G = 10^9.
std::uint64_t parse_count(std::string_view flag, std::string_view text);

// Bytes: "4096", "512KiB", "64MiB", "1GiB", "2TiB" (powers of 1024), "500kB", "8MB", "1GB", "2TB"
// (powers of 1000). A bare "64M" is refused: it means 64MB to some and 64MiB to others.
std::uint64_t parse_size(std::string_view flag, std::string_view text);

// "250ns", "10us", "500ms", "10s", "10m", "24h", "7d". The unit is required; `m` is minutes and `M`
// is no duration.
std::chrono::nanoseconds parse_duration(std::string_view flag, std::string_view text);

// "50k/s", "3M/m", "1G/d": a rate per second, above 0.
double parse_rate(std::string_view flag, std::string_view text);

// "1e-6", "0.01", "1%": more than 0 and less than 1.
double parse_probability(std::string_view flag, std::string_view text);

// "0", "0.3", "30%", "1": from 0 to 1, both included.
double parse_share(std::string_view flag, std::string_view text);

// Any number, for a caller that says what it is: "10", "0.5", "1e-4", "5.7k", "2M". Nothing if it is
// none.
std::optional<double> read_number(std::string_view text);

// "30s" or "1M": an interval, or the length of a window, by time or by count. Not zero.
using DurationOrCount = std::variant<std::chrono::nanoseconds, std::uint64_t>;
DurationOrCount parse_duration_or_count(std::string_view flag, std::string_view text);

std::string format_count(std::uint64_t count);                    // 7,003,330
std::string counted(std::uint64_t count, std::string_view noun);  // 1 key, 2,000 keys
std::string format_size(std::uint64_t bytes);                     // 1.5 MiB
// 12MiB, 12.5MB, 4097: the shortest text that parse_size() reads as exactly this.
std::string exact_size(std::uint64_t bytes);
std::string format_rate(double per_second);                   // 12.3M/s
std::string format_probability(double probability);           // 9.3e-07
std::string format_duration(std::chrono::nanoseconds value);  // 250ms, 1.5s, 2m 5s, 1h 30m, 7d

}  // namespace sluice
