// The parameters of a sharded filter: settings of the whole and of each shard, and its snapshot's
// fields.
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
#include "sluice/filters/sharded/shard_crew.hpp"
#include "sluice/filters/sharded/sharded.hpp"

namespace sluice {
namespace {

constexpr std::string_view kName = "sharded";
// Prefix for a parameter of the shards that has the name of one of ours.
constexpr std::string_view kTheirs = "of.";

constexpr ParameterInfo kKnown[] = {
    {"shards", "number of filters that share the keys, each on its own thread", "1 to 64", "2"},
    {"of", "the filter that the shards are; its own parameters may follow",
     "any filter but sharded", "bloom"},
    {"keys", "distinct keys, or keys a window holds, all shards together", "as the shards'",
     "as the shards'"},
    {"bytes", "size of the tables, all shards together", "as the shards'",
     "what keys and fpr need"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

// Filters that cut a window's keys into generations, each with its own limit.
unsigned spans_of(std::string_view of, unsigned generations) {
  return of == "apbf" || of == "apbbf" ? std::max(1u, generations) : 1;
}

// The most keys whose share is no more than `share`.
std::uint64_t keys_of_share(std::uint64_t share, unsigned shards, unsigned spans) {
  std::uint64_t low = 0, high = checked_multiply(share, shards, "filter 'sharded'");
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (ShardedFilter::share_of(middle, shards, spans) <= share)
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

// Ours and the shards'.
struct Parts {
  Settings ours, theirs;
};
Parts parts_of(const Settings& settings) {
  Parts parts;
  for (const auto& [name, value] : settings.pairs()) {
    if (name == "shards" || name == "of")
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

// What each shard is told of settings and wishes that are about all together.
Forecast forecast_shard(const ShardedFilter::Params& params, const Wish& wish,
                        const Settings& settings, unsigned spans) {
  const auto share = [&](std::uint64_t keys) {
    return ShardedFilter::share_of(keys, params.shards, spans);
  };
  Settings theirs;
  for (const auto& [name, text] : settings.pairs()) {
    if (name == "keys")
      theirs.add(name, share(parse_count("keys of filter 'sharded'", text)));
    else if (name == "bytes")
      theirs.add(name, parse_size("bytes of filter 'sharded'", text) / params.shards);
    else
      theirs.add(name, text);
  }
  Wish each = wish;
  if (wish.keys) each.keys = share(*wish.keys);
  return filter_named(params.of).forecast(each, theirs);
}

}  // namespace

std::uint64_t ShardedFilter::share_of(std::uint64_t keys, unsigned shards, unsigned spans) {
  constexpr double kDeviations = 6;
  const double spread = std::sqrt(static_cast<double>(spans) * static_cast<double>(keys) *
                                  static_cast<double>(shards - 1)) /
                        shards;
  const std::uint64_t share = keys / shards + (keys % shards != 0) +
                              static_cast<std::uint64_t>(std::ceil(kDeviations * spread));
  return std::min(share, keys);
}

std::span<const ParameterInfo> ShardedFilter::Params::known() {
  return kKnown;
}

ShardedFilter::Params ShardedFilter::Params::from(const Wish& wish, const Settings& settings) {
  const Parts parts = parts_of(settings);
  const SettingsReader reader(kName, parts.ours, kKnown);
  Params params;
  params.shards = static_cast<unsigned>(reader.count("shards", 1, kMostShards).value_or(2));
  params.of = reader.choice("of", names()).value_or(params.of);
  Forecast each = forecast_shard(params, wish, parts.theirs, 1);
  const unsigned spans = spans_of(params.of, each.generations.value_or(0));
  if (spans > 1) each = forecast_shard(params, wish, parts.theirs, spans);
  params.each = each.settings;
  if (const auto share = number(params.each, "keys")) {
    // If no number was asked for, or the shards changed it: their capacity decides, as a number
    // whose share gives the same shards again.
    std::optional<std::uint64_t> keys = wish.keys;
    for (const auto& [name, text] : parts.theirs.pairs())
      if (name == "keys") keys = parse_count("keys of filter 'sharded'", text);
    if (!keys || share_of(*keys, params.shards, spans) != *share)
      keys = keys_of_share(*share, params.shards, spans);
    params.keys = *keys;
    params.each = with_number(params.each, "keys", share_of(*keys, params.shards, spans));
  }
  return params;
}

Settings ShardedFilter::Params::settings() const {
  Settings settings;
  settings.add("shards", std::uint64_t{shards});
  settings.add("of", std::string_view(of));
  for (const auto& [name, value] : each.pairs()) {
    if (name == "keys")
      settings.add(name, keys);
    else if (name == "bytes")
      settings.add(name, number(each, "bytes").value_or(0) * shards);
    else if (name == "shards" || name == "of")
      settings.add(fmt::format("{}{}", kTheirs, name), value);
    else
      settings.add(name, value);
  }
  return settings;
}

Forecast ShardedFilter::Params::forecast() const {
  Wish wish;
  if (keys > 0) wish.keys = number(each, "keys");
  Forecast all = filter_named(of).forecast(wish, each);
  all.keys = keys > 0 ? keys : all.keys * shards;
  for (std::uint64_t* const bytes : {&all.bytes, &all.paged_bytes})
    *bytes = checked_add(checked_multiply(*bytes, shards, "filter 'sharded'"),
                         ShardCrew::bytes_for(shards) + shards * sizeof(AnyFilter) +
                             AnyFilter::holder_bytes<ShardedWindow>(),
                         "filter 'sharded'");
  all.tables = (all.tables + 1) * shards;
  all.fpr_spread /= std::sqrt(static_cast<double>(shards));
  all.settings = settings();
  return all;
}

// Far more than the fields of any filter take.
constexpr std::uint32_t kMostFieldBytes = 1 << 20;

ShardedFilter::Decoded ShardedFilter::decode_shards(Decoder& header, Decoder& payload, bool ages,
                                                    MemoryResource& memory) {
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no filter 'sharded' has these fields");
  };
  Decoded decoded{{}, Vector<AnyFilter>(memory)};
  Params& params = decoded.params;
  params.shards = header.u32();
  const std::uint16_t kind = header.u16();
  const std::uint16_t version = header.u16();
  params.keys = header.u64();
  refuse(params.shards == 0 || params.shards > kMostShards);
  // One within another could go on for as long as the bytes do.
  params.of = name_of(static_cast<FilterKind>(kind));
  refuse(params.of == kName);
  decoded.shards.reserve(params.shards);
  for (unsigned i = 0; i < params.shards; ++i) {
    const std::uint64_t payload_bytes = payload.u64();
    const std::uint32_t field_bytes = payload.u32();
    refuse(field_bytes > kMostFieldBytes || field_bytes > payload.remaining() ||
           payload_bytes > payload.remaining() - field_bytes);
    std::vector<std::byte> field_copy(field_bytes);
    payload.bytes(field_copy);
    BytesDecoder fields(field_copy);
    PartDecoder part(payload, payload_bytes);
    AnyFilter shard = decode_filter(kind, version, fields, part, memory);
    refuse(fields.remaining() != 0 || part.remaining() != 0 || shard.ages() != ages);
    if (i == 0) params.each = shard.settings();
    refuse(i > 0 && shard.settings() != params.each);
    decoded.shards.push_back(std::move(shard));
  }
  refuse(payload.remaining() != 0);
  const unsigned spans = spans_of(params.of, ages ? decoded.shards.front().generations() : 0);
  refuse(params.keys > std::uint64_t{1} << 52 ||
         number(params.each, "keys").value_or(0) != share_of(params.keys, params.shards, spans));
  return decoded;
}

std::span<const ParameterInfo> sharded_parameters() {
  return kKnown;
}

AnyFilter make_sharded(const Wish& wish, const Settings& settings, MemoryResource& memory) {
  const auto params = ShardedFilter::Params::from(wish, settings);
  if (params.forecast().generations) return AnyFilter(ShardedWindow::make(params, memory));
  return AnyFilter(Sharded::make(params, memory));
}

// Never brief: shards are made of the settings that a brief forecast leaves out.
Forecast forecast_sharded(const Wish& wish, const Settings& settings) {
  Wish whole = wish;
  whole.brief = false;
  return ShardedFilter::Params::from(whole, settings).forecast();
}

}  // namespace sluice
