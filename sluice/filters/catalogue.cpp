#include "sluice/filters/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/filters/blocked_bloom.hpp"
#include "sluice/filters/bloom.hpp"
#include "sluice/filters/bloom_family.hpp"
#include "sluice/filters/exact.hpp"
#include "sluice/filters/none.hpp"

namespace sluice {
namespace {

AnyFilter make_exact(const Wish& wish, const Settings& settings) {
  return AnyFilter(Exact::make(Exact::Params::from(wish, settings)));
}

AnyFilter make_none(const Wish&, const Settings& settings) {
  SettingsReader("none", settings, {});
  return AnyFilter(None::make({}));
}

template <Filter F>
AnyFilter decode_as(std::uint16_t version, Decoder& header, Decoder& payload) {
  if (version != F::kVersion)
    throw CorruptSnapshot(fmt::format(
        "filter '{}' is of version {}, and this build reads version {}: was it written by "
        "a newer sluice?",
        name_of(F::kKind), version, F::kVersion));
  return AnyFilter(F::decode(header, payload));
}

}  // namespace

std::span<const FilterInfo> catalogue() {
  static const FilterInfo kFilters[] = {
      {"bloom",
       "a set of a known number of keys in bits: small, fast, and wrong at most at the rate asked "
       "for",
       bloom_parameters(), make_bloom},
      {"exact", "every key's digest: never wrong, and grows with the keys", Exact::Params::known(),
       make_exact},
      {"none", "lets everything through: the baseline of benchmarks", {}, make_none},
  };
  return kFilters;
}

const FilterInfo& filter_named(std::string_view name) {
  std::string names;
  for (const FilterInfo& info : catalogue()) {
    if (info.name == name) return info;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  throw BadParameters(fmt::format("there is no filter '{}': there are {}", name, names));
}

AnyFilter make_filter(std::string_view name_and_settings, const Wish& wish) {
  const std::size_t comma = std::min(name_and_settings.find(','), name_and_settings.size());
  const FilterInfo& info = filter_named(name_and_settings.substr(0, comma));
  name_and_settings.remove_prefix(std::min(comma + 1, name_and_settings.size()));
  return info.make(wish, Settings::parse(name_and_settings));
}

std::string_view name_of(FilterKind kind) noexcept {
  switch (kind) {
    case FilterKind::exact:
      return "exact";
    case FilterKind::bloom:
    case FilterKind::blocked_bloom:
      return "bloom";
    case FilterKind::none:
      return "none";
  }
  return "unknown";
}

AnyFilter decode_filter(std::uint16_t kind, std::uint16_t version, Decoder& header,
                        Decoder& payload) {
  switch (static_cast<FilterKind>(kind)) {
    case FilterKind::exact:
      return decode_as<Exact>(version, header, payload);
    case FilterKind::bloom:
      return decode_as<Bloom>(version, header, payload);
    case FilterKind::blocked_bloom:
      return decode_as<BlockedBloom>(version, header, payload);
    case FilterKind::none:
      return decode_as<None>(version, header, payload);
  }
  throw CorruptSnapshot(fmt::format(
      "this build knows no filter of kind {}: was it written by a newer sluice?", kind));
}

}  // namespace sluice
