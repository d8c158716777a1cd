#include "sluice/filters/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/filters/share_range.hpp"

namespace sluice {
namespace {

struct Known {
  const FilterInfo* filter = nullptr;
  const KindInfo* kind = nullptr;
};

Known find_kind(FilterKind kind) {
  for (const FilterInfo& filter : catalogue())
    for (const KindInfo& info : filter.row->kinds)
      if (info.kind == kind) return {&filter, &info};
  return {};
}

}  // namespace

std::span<const FilterInfo> catalogue() {
  static const std::vector<FilterInfo> kFilters = [] {
    std::vector<FilterInfo> all = set_rows();
    const std::vector<FilterInfo> windows = window_rows();
    all.insert(all.end(), windows.begin(), windows.end());
    return all;
  }();
  return kFilters;
}

const FilterInfo& filter_named(std::string_view name) {
  const auto found = std::ranges::find(catalogue(), name, &FilterInfo::name);
  if (found != catalogue().end()) return *found;
  std::string names;
  for (const FilterInfo& info : catalogue())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  throw BadParameters(fmt::format("there is no filter '{}': there are {}", name, names));
}

namespace {

std::pair<const FilterInfo*, Settings> parsed(std::string_view name_and_settings) {
  const std::size_t comma = std::min(name_and_settings.find(','), name_and_settings.size());
  const FilterInfo& info = filter_named(name_and_settings.substr(0, comma));
  if (comma + 1 == name_and_settings.size())
    throw BadParameters(
        fmt::format("filter '{}': nothing follows the comma; parameters are written name=value,…",
                    name_and_settings));
  name_and_settings.remove_prefix(std::min(comma + 1, name_and_settings.size()));
  return {&info, Settings::parse(name_and_settings)};
}

}  // namespace

void check_wish(const Wish& wish) {
  // The first stage of a window is asked for half of the window's error.
  if (!(wish.fpr >= kLeastAsked / 2 && wish.fpr <= kMostAsked))
    throw BadParameters(fmt::format("`fpr` {}", kShareRange));
  if (wish.keys == std::uint64_t{0})
    throw BadParameters("`keys` 0 leaves nothing to remember: give 1 or more");
}

AnyFilter make_filter(std::string_view name_and_settings, const Wish& wish,
                      MemoryResource& memory) {
  check_wish(wish);
  memory.check_largest_block();
  const auto [info, settings] = parsed(name_and_settings);
  return info->make(wish, settings, memory);
}

Forecast forecast_filter(std::string_view name_and_settings, const Wish& wish) {
  check_wish(wish);
  const auto [info, settings] = parsed(name_and_settings);
  return info->forecast(wish, settings);
}

bool may_age(std::string_view name_and_settings) {
  const FilterInfo& info = filter_named(name_and_settings.substr(0, name_and_settings.find(',')));
  return info.name == "sharded" || std::ranges::find(info.row->families, Role::window,
                                                     &PlanFamily::role) != info.row->families.end();
}

std::string_view name_of(FilterKind kind) noexcept {
  if (kind == FilterKind::window) return "window";
  const Known known = find_kind(kind);
  return known.filter == nullptr ? "unknown" : known.filter->name;
}

AnyFilter decode_filter(std::uint16_t kind, std::uint16_t version, Decoder& header,
                        Decoder& payload, MemoryResource& memory,
                        std::optional<unsigned> generations) {
  const Known known = find_kind(static_cast<FilterKind>(kind));
  if (known.kind == nullptr)
    throw CorruptSnapshot(fmt::format(
        "this build knows no filter of kind {}: was it written by a newer sluice?", kind));
  if (version != known.kind->version)
    throw CorruptSnapshot(fmt::format(
        "filter '{}' is of version {}, and this build reads version {}: was it written by "
        "a newer sluice?",
        known.filter->name, version, known.kind->version));
  memory.check_largest_block();
  return known.kind->decode(header, payload, memory, generations);
}

}  // namespace sluice
