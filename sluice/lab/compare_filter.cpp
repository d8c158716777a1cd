#include "sluice/lab/compare_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// Beyond it nothing is worth planning; below it nothing is told apart.
constexpr double kWorstFpr = 0.3;
constexpr double kLeastFpr = 1e-12;
constexpr double kStep = 0.630957;  // 10^(-1/5)

// A filter as it was named.
struct Named {
  std::string name;
  std::string text;                 // with its settings
  bool bytes = false, fpr = false;  // which its settings say
};

Named named(std::string_view name_and_settings, const CompareWish& wish) {
  const std::size_t comma = std::min(name_and_settings.find(','), name_and_settings.size());
  Named filter{.name = std::string(name_and_settings.substr(0, comma)), .text = {}};
  // With a window, the filter that remembers keys exactly has another name.
  if (wish.window && filter.name == "exact") filter.name = "exact-window";
  filter.text = filter.name + std::string(name_and_settings.substr(comma));
  const std::size_t begin = std::min(comma + 1, name_and_settings.size());
  const Settings settings = Settings::parse(name_and_settings.substr(begin));
  for (const auto& [setting, value] : settings.pairs()) {
    filter.bytes |= setting == "bytes";
    filter.fpr |= setting == "fpr";
  }
  return filter;
}

// Where `bytes` is the size of the whole filter; that of `dynamic` is one of many tables.
bool has_fixed_size(const FilterInfo& info) {
  return info.name != "dynamic" &&
         std::ranges::find(info.parameters, "bytes", &ParameterInfo::name) != info.parameters.end();
}

Wish keys_and_fpr(const CompareWish& wish, double fpr) {
  return {.keys = wish.window->by_time() ? wish.window_keys : wish.window->size, .fpr = fpr};
}

AnyFilter window_of(const std::string& filter, const CompareWish& wish, double fpr) {
  return AnyFilter(Window::make({.spec = *wish.window,
                                 .filter = filter,
                                 .fpr = fpr,
                                 .keys = wish.window->by_time() ? wish.window_keys : std::nullopt,
                                 // Times that are not believed do not come this far.
                                 .max_ahead = std::uint64_t{1} << 61}));
}

// At most `memory` bytes. What a filter needs besides its table is found by making it: once too
// large, then smaller by what was too much.
std::optional<AnyFilter> fitted(const std::string& text, const CompareWish& wish, double fpr) {
  const std::uint64_t memory = *wish.memory;
  std::uint64_t table = memory;
  for (int attempt = 0; attempt < 6; ++attempt) {
    try {
      const std::string sized = fmt::format("{},bytes={}", text, table);
      AnyFilter filter = wish.window ? window_of(sized, wish, fpr)
                                     : make_filter(sized, {.keys = wish.wish.keys, .fpr = fpr});
      const std::uint64_t bytes = filter.stats().bytes;
      if (bytes <= memory) return filter;
      if (bytes - memory >= table) return std::nullopt;
      table -= std::min(table, std::max(bytes - memory, kCacheLineBytes));
    } catch (const BadParameters&) {  // its table cannot be that small
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// What a window takes for an error; nothing where its filter cannot have that one.
std::optional<std::uint64_t> bytes_for(const std::string& text, const CompareWish& wish,
                                       double fpr) {
  try {
    return window_of(text, wish, fpr).stats().bytes;
  } catch (const BadParameters&) {
    return std::nullopt;
  }
}

// Less error than what fits, by less than a step, as long as it still does.
double between(const std::string& text, const CompareWish& wish, double fits) {
  double too_large = fits * kStep;
  for (int step = 0; step < 10; ++step) {
    const double fpr = std::sqrt(fits * too_large);
    const std::optional<std::uint64_t> bytes = bytes_for(text, wish, fpr);
    (bytes && *bytes <= *wish.memory ? fits : too_large) = fpr;
  }
  return fits;
}

// The least error, by steps of a fifth of a decade, for which a window fits into the memory. One
// that is planned for less than it can hold would grow instead. Where sizes come in steps, what is
// left of the memory makes the table larger.
AnyFilter best_window(const std::string& text, const CompareWish& wish) {
  std::optional<double> least;
  for (double fpr = kWorstFpr; fpr > kLeastFpr; fpr *= kStep) {
    const std::optional<std::uint64_t> bytes = bytes_for(text, wish, fpr);
    if (!bytes) continue;  // not at this error: perhaps at a smaller one
    if (*bytes > *wish.memory) break;
    least = fpr;
  }
  if (!least)
    throw BadParameters(fmt::format(
        "filter '{}' does not hold a window of {} keys in {}, not even with an error of {}: give "
        "it more memory, or a smaller window",
        text, format_count(keys_and_fpr(wish, kWorstFpr).keys.value_or(0)),
        format_size(*wish.memory), kWorstFpr));
  // What a filter makes of an error is its best plan; bytes alone leave it to guess the rest.
  AnyFilter planned = window_of(text, wish, between(text, wish, *least));
  if (planned.stats().bytes >= *wish.memory - *wish.memory / 20) return planned;
  if (std::optional<AnyFilter> larger = fitted(text, wish, *least)) return std::move(*larger);
  return planned;
}

bool is_window(const Named& filter, const CompareWish& wish) {
  // Whether a filter ages is asked of one that is made.
  return wish.window && make_filter(filter.text, keys_and_fpr(wish, wish.wish.fpr)).ages();
}

// A window filter's size follows from its error where it is not given.
bool decides(const Named& filter, const CompareWish& wish) {
  if (!wish.memory || filter.bytes) return false;
  if (is_window(filter, wish)) return filter.name != "exact-window" && !filter.fpr;
  return has_fixed_size(filter_named(filter.name));
}

}  // namespace

bool memory_decides(std::string_view name_and_settings, const CompareWish& wish) {
  return decides(named(name_and_settings, wish), wish);
}

AnyFilter make_compared(std::string_view name_and_settings, const CompareWish& wish) {
  const Named filter = named(name_and_settings, wish);
  filter_named(filter.name);  // or it is refused
  const bool window = is_window(filter, wish);
  if (!decides(filter, wish))
    return window ? window_of(filter.text, wish, wish.wish.fpr)
                  : make_filter(filter.text, wish.wish);
  if (window) return best_window(filter.text, wish);
  CompareWish plain = wish;
  plain.window.reset();
  if (std::optional<AnyFilter> made = fitted(filter.text, plain, wish.wish.fpr))
    return std::move(*made);
  // It says itself why not.
  return make_filter(fmt::format("{},bytes={}", filter.text, *wish.memory), wish.wish);
}

}  // namespace sluice
