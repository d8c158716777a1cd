// The parameters of a dynamic filter: reading, checking and showing them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kWord = 64;
constexpr unsigned kMostGrowth = 16;
constexpr std::uint64_t kMostForecast = 4096;
constexpr double kLeastTighten = 0.1;
constexpr double kMostTighten = 0.99;
// No filter is made stricter than this: it would take ever more bits per key, and a thousand such
// errors together are still nothing.
constexpr double kStrictest = 1e-30;

// A filter for this many keys takes 3.4 MiB at 10⁻⁶: small compared with a process, and a stream of
// a hundred million keys makes a hundred of them.
constexpr std::uint64_t kStandardKeys = 1'000'000;

constexpr std::string_view kYesNo[] = {"no", "yes"};
constexpr std::string_view kLayouts[] = {"plain", "matrix"};
constexpr std::string_view kAsk[] = {"always", "auto"};

constexpr ParameterInfo kKnown[] = {
    {"keys", "distinct keys that one filter takes before another is added", "1 to 2^44",
     "`keys`; 1M, or what bytes hold"},
    {"fpr", "the error of one filter when full; with tighten, of all of them", "above 0, below 1",
     "`fpr`"},
    {"bytes", "size of one filter's table", "8 to 64TiB", "what keys and fpr need"},
    {"probes", "bits per key", "1 to 64", "the best for the size"},
    {"forget", "whether it can forget keys: counters of 4 bits instead of bits", "yes or no", "no"},
    {"layout", "filter by filter, or the bits of all filters side by side", "plain or matrix",
     "matrix where it can be: with forget=no and no tighten"},
    {"ask", "when insert asks before it writes: always, or once that saves a whole filter",
     "always or auto", "always"},
    {"tighten", "each filter's error as a share of the one before", "0.1 to 0.99",
     "not: all filters alike"},
    {"growth", "each filter's keys as a multiple of the one before, with tighten", "1 to 16", "2"},
};

void refuse_if(bool wrong, const char* sentence) {
  if (wrong) throw BadParameters(sentence);
}

}  // namespace

std::span<const ParameterInfo> Dynamic::Params::known() {
  return kKnown;
}

Dynamic::Params Dynamic::Params::from(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("dynamic", settings, kKnown);
  Params params;
  params.target_fpr = reader.probability("fpr").value_or(wish.fpr);
  params.forget = reader.choice("forget", kYesNo) == "yes";
  params.ask = reader.choice("ask", kAsk) == "auto" ? Ask::by_rule : Ask::always;
  params.tighten = reader.probability("tighten").value_or(0);
  const auto bytes = reader.size("bytes", 8, kMostDynamicBytes);
  const auto probes = reader.count("probes", 1, model::kMostProbes);
  const auto growth = reader.count("growth", 1, kMostGrowth);
  const bool alike = params.tighten == 0;
  refuse_if(!alike && (bytes || probes),
            "filter 'dynamic' with tighten= chooses bytes and probes of each filter itself: give "
            "keys and fpr instead");
  refuse_if(alike && growth, "filter 'dynamic' takes growth= only together with tighten=");
  params.growth = alike ? 1 : static_cast<unsigned>(growth.value_or(2));
  const auto layout = reader.choice("layout", kLayouts);
  const bool can_be_matrix = alike && !params.forget;
  params.layout = (layout ? *layout == "matrix" : can_be_matrix) ? Layout::matrix : Layout::plain;

  BloomWish asked{.fpr = alike ? params.target_fpr : params.target_fpr * (1 - params.tighten),
                  .keys = wish.keys,
                  .probes = probes,
                  .standard_keys = kStandardKeys};
  if (const auto keys = reader.count("keys", 1, kMostBloomKeys)) asked.keys = keys;
  const std::uint64_t a_byte = params.forget ? 2 : 8;
  if (bytes) asked.places = *bytes * a_byte;
  const BloomSize size = bloom_size("dynamic", asked, kWord, kMostDynamicBytes * a_byte);
  params.bits = size.places;
  params.probes = size.probes;
  params.capacity = size.capacity;
  return params;
}

Settings Dynamic::Params::settings() const {
  Settings settings;
  settings.add("keys", capacity);
  settings.add("fpr", target_fpr);
  if (tighten == 0) {
    settings.add("bytes", shape(0).bytes());
    settings.add("probes", std::uint64_t{probes});
  }
  settings.add("forget", kYesNo[forget ? 1 : 0]);
  settings.add("layout", kLayouts[layout == Layout::matrix ? 1 : 0]);
  settings.add("ask", kAsk[ask == Ask::by_rule ? 1 : 0]);
  if (tighten != 0) {
    settings.add("tighten", tighten);
    settings.add("growth", std::uint64_t{growth});
  }
  return settings;
}

namespace {

struct Series {
  std::uint64_t filters = 0, bytes = 0;
  double log_right = 0, lines = 0;
};

// All filters that so many keys fill. Those that are alike, as all of them without `tighten` are and those
// that are as strict as any, are looked at once. Where each is a little stricter than the one before, they
// come by the thousand only if they do not grow: then, after the first, the last of a few tells the bytes of
// all of these, and the first of them the error, so that both are limits.
Series series_of(const Dynamic::Params& params, std::uint64_t keys) {
  constexpr std::uint64_t kEach = 16, kShare = 4;
  Series all;
  std::uint64_t held = 0;
  while (held < keys && all.filters < kMostForecast) {
    const DynamicShape next = params.shape(all.filters);
    std::uint64_t together = 1;
    if (params.growth == 1) {
      together = params.tighten == 0   ? kMostForecast
                 : all.filters < kEach ? 1
                                       : all.filters / kShare;
      together = std::min({together, kMostForecast - all.filters,
                           (keys - held + next.capacity - 1) / next.capacity});
    }
    const DynamicShape largest = together == 1 ? next : params.shape(all.filters + together - 1);
    const auto count = static_cast<double>(together);
    held += together * next.capacity;
    all.log_right += count * std::log1p(-classic_fpr(next.bits, next.probes, next.capacity));
    all.bytes += together * largest.bytes();
    all.lines += 2 * (count - 1) + (held < keys ? 2 : largest.probes);
    all.filters += together;
  }
  return all;
}

}  // namespace

Forecast Dynamic::Params::forecast(std::uint64_t keys) const {
  if (const std::string wrong = what_is_wrong(); !wrong.empty()) throw BadParameters(wrong);
  const auto [filters, summed, log_right, touched] = series_of(*this, keys);
  std::uint64_t bytes = summed;
  double lines = touched;
  if (layout == Layout::matrix) {
    const std::uint64_t newest = keys - std::min(keys, (filters - 1) * capacity);
    bytes = BitMatrix::bytes_for(bits, filters, newest <= moved_within());
    bytes += std::bit_ceil((filters + MatrixGroup::kMostColumns - 1) / MatrixGroup::kMostColumns) *
             sizeof(MatrixGroup);
    lines = probes;
  }
  // A vector of pieces doubles as it grows.
  return {.keys = keys,
          .bytes = bytes + std::bit_ceil(filters) * sizeof(DynamicPiece),
          .tables = filters,
          .fpr = -std::expm1(log_right),
          .fpr_spread = model::bloom_spread(static_cast<double>(bits), probes,
                                            static_cast<double>(std::min(capacity, keys))),
          .lines = lines,
          .settings = settings()};
}

DynamicShape Dynamic::Params::shape(std::size_t index) const {
  DynamicShape shape{.bits = bits, .probes = probes, .capacity = capacity, .counted = forget};
  if (tighten == 0 || index == 0) return shape;
  // f·(1−r)·rⁱ: however many there are, they sum up to less than f.
  const double fpr = target_fpr * (1 - tighten) * std::pow(tighten, static_cast<double>(index));
  const double keys = static_cast<double>(capacity) *
                      std::pow(static_cast<double>(growth), static_cast<double>(index));
  const BloomSize size = bloom_size(
      "dynamic",
      {.fpr = std::max(fpr, kStrictest),
       .keys = static_cast<std::uint64_t>(std::min(keys, static_cast<double>(kMostBloomKeys)))},
      kWord, kMostDynamicBytes * 8);
  shape.bits = size.places;
  shape.probes = size.probes;
  shape.capacity = size.capacity;
  return shape;
}

std::string Dynamic::Params::what_is_wrong() const {
  if (const char* wrong = sluice::what_is_wrong(shape(0)))
    return fmt::format("filter 'dynamic' {}", wrong);
  if (!(target_fpr > 0 && target_fpr < 1))
    return "filter 'dynamic' takes a target error above 0 and below 1";
  if (tighten != 0 && !(tighten >= kLeastTighten && tighten <= kMostTighten))
    return "filter 'dynamic' takes tighten of 0.1 to 0.99";
  // Otherwise a small file could make the next filter a large one.
  if (tighten != 0 && model::bloom_fpr(static_cast<double>(bits), probes,
                                       static_cast<double>(capacity)) > target_fpr)
    return "filter 'dynamic' with tighten= takes a first filter large enough for its keys and fpr";
  if (growth == 0 || growth > kMostGrowth || (tighten == 0 && growth != 1))
    return "filter 'dynamic' takes growth of 1 to 16, and only together with tighten=";
  if (forget && layout == Layout::matrix)
    return "filter 'dynamic' cannot keep counters in a matrix: with forget=yes it takes "
           "layout=plain";
  if (tighten != 0 && layout == Layout::matrix)
    return "filter 'dynamic' can only keep filters that are alike in a matrix: with tighten= it "
           "takes layout=plain";
  if (forget && tighten != 0)
    return "filter 'dynamic' can only join what is left of filters that are alike: forget=yes "
           "cannot "
           "be used with tighten=";
  if (forget && ask != Ask::always)
    return "filter 'dynamic' could not forget a key that was written twice: with forget=yes it "
           "takes ask=always";
  return {};
}

bool Dynamic::Params::same_series(const Params& other) const {
  Params like = other;
  like.layout = layout;
  like.ask = ask;
  return *this == like;
}

}  // namespace sluice
