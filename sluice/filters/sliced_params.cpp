// What a sliced filter is made of: the settings of all together and of each slice, and its
// snapshot's fields.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/slice_crew.hpp"
#include "sluice/filters/sliced.hpp"

namespace sluice {
namespace {

constexpr std::string_view kName = "sliced";
// In front of a parameter of the slices that has the name of one of ours.
constexpr std::string_view kTheirs = "of.";

constexpr ParameterInfo kKnown[] = {
    {"slices", "filters that the keys are dealt to, each judged on a thread of its own", "1 to 64",
     "2"},
    {"of", "the filter that the slices are; its own parameters may follow", "any filter but sliced",
     "bloom"},
    {"keys", "distinct keys, or keys a window holds, all slices together", "as the slices'",
     "as the slices'"},
    {"bytes", "size of the tables, all slices together", "as the slices'",
     "what keys and fpr need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "--fpr"},
};

// Filters that cut a window's keys into generations which must each hold their own.
unsigned spans_of(std::string_view of, unsigned generations) {
  return of == "apbf" || of == "apbbf" ? std::max(1u, generations) : 1;
}

// The most keys whose share is no more than `share`.
std::uint64_t keys_of_share(std::uint64_t share, unsigned slices, unsigned spans) {
  std::uint64_t low = 0, high = checked_multiply(share, slices, "filter 'sliced'");
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (SlicedFilter::share_of(middle, slices, spans) <= share)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

std::optional<std::uint64_t> number(const Settings& settings, std::string_view name) {
  for (const auto& [each, text] : settings.pairs()) {
    if (each != name) continue;
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  return {};
}

Settings with_number(const Settings& settings, std::string_view name, std::uint64_t value) {
  Settings changed;
  for (const auto& [each, text] : settings.pairs())
    each == name ? changed.add(each, value) : changed.add(each, text);
  return changed;
}

// Ours and the slices'.
struct Parts {
  Settings ours, theirs;
};
Parts parts_of(const Settings& settings) {
  Parts parts;
  for (const auto& [name, value] : settings.pairs()) {
    if (name == "slices" || name == "of")
      parts.ours.add(name, value);
    else
      parts.theirs.add(
          name.starts_with(kTheirs) ? std::string_view(name).substr(kTheirs.size()) : name, value);
  }
  return parts;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const FilterInfo& info : catalogue())
    if (info.name != kName) names.push_back(info.name);
  return names;
}

// What each slice is told of settings and wishes that are about all together.
Forecast forecast_slice(const SlicedFilter::Params& params, const Wish& wish,
                        const Settings& settings, unsigned spans) {
  const auto share = [&](std::uint64_t keys) {
    return SlicedFilter::share_of(keys, params.slices, spans);
  };
  Settings theirs;
  for (const auto& [name, text] : settings.pairs()) {
    if (name == "keys")
      theirs.add(name, share(parse_count("keys of filter 'sliced'", text)));
    else if (name == "bytes")
      theirs.add(name, parse_size("bytes of filter 'sliced'", text) / params.slices);
    else
      theirs.add(name, text);
  }
  Wish each = wish;
  if (wish.keys) each.keys = share(*wish.keys);
  return filter_named(params.of).forecast(each, theirs);
}

}  // namespace

std::uint64_t SlicedFilter::share_of(std::uint64_t keys, unsigned slices, unsigned spans) {
  constexpr double kDeviations = 6;
  const double spread = std::sqrt(static_cast<double>(spans) * static_cast<double>(keys) *
                                  static_cast<double>(slices - 1)) /
                        slices;
  const std::uint64_t share = keys / slices + (keys % slices != 0) +
                              static_cast<std::uint64_t>(std::ceil(kDeviations * spread));
  return std::min(share, keys);
}

std::span<const ParameterInfo> SlicedFilter::Params::known() {
  return kKnown;
}

SlicedFilter::Params SlicedFilter::Params::from(const Wish& wish, const Settings& settings) {
  const Parts parts = parts_of(settings);
  const SettingsReader reader(kName, parts.ours, kKnown);
  Params params;
  params.slices = static_cast<unsigned>(reader.count("slices", 1, kMostSlices).value_or(2));
  params.of = reader.choice("of", names()).value_or(params.of);
  Forecast each = forecast_slice(params, wish, parts.theirs, 1);
  const unsigned spans = spans_of(params.of, each.generations.value_or(0));
  if (spans > 1) each = forecast_slice(params, wish, parts.theirs, spans);
  params.each = each.settings;
  if (const auto share = number(params.each, "keys")) {
    // Asked for none, or for what they made something else of: what the slices are for decides, as
    // a number whose share they can be made for again.
    std::optional<std::uint64_t> keys = wish.keys;
    for (const auto& [name, text] : parts.theirs.pairs())
      if (name == "keys") keys = parse_count("keys of filter 'sliced'", text);
    if (!keys || share_of(*keys, params.slices, spans) != *share)
      keys = keys_of_share(*share, params.slices, spans);
    params.keys = *keys;
    params.each = with_number(params.each, "keys", share_of(*keys, params.slices, spans));
  }
  return params;
}

Settings SlicedFilter::Params::settings() const {
  Settings settings;
  settings.add("slices", std::uint64_t{slices});
  settings.add("of", std::string_view(of));
  for (const auto& [name, value] : each.pairs()) {
    if (name == "keys")
      settings.add(name, keys);
    else if (name == "bytes")
      settings.add(name, number(each, "bytes").value_or(0) * slices);
    else if (name == "slices" || name == "of")
      settings.add(fmt::format("{}{}", kTheirs, name), value);
    else
      settings.add(name, value);
  }
  return settings;
}

Forecast SlicedFilter::Params::forecast() const {
  Wish wish;
  if (keys > 0) wish.keys = number(each, "keys");
  Forecast all = filter_named(of).forecast(wish, each);
  all.keys = keys > 0 ? keys : all.keys * slices;
  all.bytes = checked_add(checked_multiply(all.bytes, slices, "filter 'sliced'"),
                          SliceCrew::bytes_for(slices), "filter 'sliced'");
  all.fpr_spread /= std::sqrt(static_cast<double>(slices));
  all.settings = settings();
  return all;
}

// Far more than the fields of any filter take.
constexpr std::uint32_t kMostFieldBytes = 1 << 20;

SlicedFilter::Decoded SlicedFilter::decode_slices(Decoder& header, Decoder& payload, bool ages) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'sliced' has these fields");
  };
  Decoded decoded;
  Params& params = decoded.params;
  params.slices = header.u32();
  const std::uint16_t kind = header.u16();
  const std::uint16_t version = header.u16();
  params.keys = header.u64();
  refuse(params.slices == 0 || params.slices > kMostSlices);
  // One within another could go on for as long as the bytes do.
  params.of = name_of(static_cast<FilterKind>(kind));
  refuse(params.of == kName);
  for (unsigned i = 0; i < params.slices; ++i) {
    const std::uint64_t payload_bytes = payload.u64();
    const std::uint32_t field_bytes = payload.u32();
    refuse(field_bytes > kMostFieldBytes || field_bytes > payload.remaining() ||
           payload_bytes > payload.remaining() - field_bytes);
    std::vector<std::byte> field_copy(field_bytes);
    payload.bytes(field_copy);
    BytesDecoder fields(field_copy);
    PartDecoder part(payload, payload_bytes);
    AnyFilter slice = decode_filter(kind, version, fields, part);
    refuse(fields.remaining() != 0 || part.remaining() != 0 || slice.ages() != ages);
    if (i == 0) params.each = slice.settings();
    refuse(i > 0 && slice.settings() != params.each);
    decoded.slices.push_back(std::move(slice));
  }
  refuse(payload.remaining() != 0);
  const unsigned spans = spans_of(params.of, ages ? decoded.slices.front().generations() : 0);
  refuse(params.keys > std::uint64_t{1} << 52 ||
         number(params.each, "keys").value_or(0) != share_of(params.keys, params.slices, spans));
  return decoded;
}

std::span<const ParameterInfo> sliced_parameters() {
  return kKnown;
}

AnyFilter make_sliced(const Wish& wish, const Settings& settings) {
  const auto params = SlicedFilter::Params::from(wish, settings);
  if (params.forecast().generations) return AnyFilter(SlicedWindow::make(params));
  return AnyFilter(Sliced::make(params));
}

Forecast forecast_sliced(const Wish& wish, const Settings& settings) {
  return SlicedFilter::Params::from(wish, settings).forecast();
}

}  // namespace sluice
