// Models of series of Bloom filters (Guo et al. 2010).
#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/dynamic.hpp"
#include "sluice/model/dynamic_sizing.hpp"

namespace sluice::model {
namespace {

constexpr ModelParameter kDynamicTakes[] = {
    {"m", "bits of a filter", Takes::number, "", 2, kMostBits},
    kProbes,
    {"c", "keys that fill a filter", Takes::number, "", 1, kMostKeys},
    {"n", "keys in total, in at most 1M filters", Takes::number, "", 0, kMostKeys},
    {"other", "keys of a second series, for the union", Takes::number, "0", 0, kMostKeys},
    {"fill", "share of set bits: its mean as in eq. 1, or every filter's own", Takes::choice,
     "mean", 0, 0, "mean exact"},
    {"limit", "the error at which a filter is rebuilt", Takes::chance, "0.05"}};
constexpr ModelOutput kDynamicTells[] = {
    {"filters", "s = ⌈n/c⌉"},
    {"filter_fpr", "error of one full filter (eq. 1)"},
    {"fpr", "error of the series (eq. 3)"},
    {"fpr_full", "the same with the last filter counted as full (eq. 12)"},
    {"union_fpr", "error of the union with --other keys (eq. 4)"},
    {"several_early",
     "chance that a key of an earlier filter is in another too (eq. 9, corrected)"},
    {"several_last", "the same for a key of the last filter (eq. 10)"},
    {"several", "share of all keys that have several addresses"},
    {"left_by_age", "share of keys left after forgetting all, oldest or newest first"},
    {"left_at_random", "the same in a random order; of at most 100 filters"},
    {"ask_first", "n · f2(n)/c: if 1 or more, asking before inserting saves memory (§3.5.1)"},
    {"wasted_filters", "filters wasted by not asking before inserting"},
    {"size_ratio", "bits of one filter with the same error / bits of the series (eq. 13)"},
    {"same_memory_fpr", "error of one filter with the memory of the series (eq. 14)"},
    {"one_filter_fpr", "error of a single filter of m bits with all n keys"},
    {"keys_for_limit", "number of keys at which eq. 3 reaches --limit"},
    {"rebuild_standard", "the most keys that one filter can hold at --limit (§4.3)"},
    {"rebuild_dynamic", "the most keys that the series can hold at --limit (§4.3, corrected)"}};
// Forgetting at random is followed step by step for each filter.
constexpr double kMostFollowed = 100;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
std::vector<double> dynamic(const ModelArguments& in) {
  const DynamicShape shape{in.number("m"), in.whole("k"), in.number("c")};
  const double limit = in.number("limit"), n = in.number("n");
  refuse_unless(n / shape.capacity <= 1e6, "model 'dynamic': --n is of more than 1M filters");
  const Fill fill = in.choice("fill") == "mean" ? Fill::mean : Fill::exact;
  const double filters = dynamic_filters(shape, n);
  return {filters,
          filter_fpr(shape, shape.capacity, fill),
          dynamic_fpr(shape, n, fill),
          dynamic_fpr_full(shape, n, fill),
          dynamic_union_fpr(shape, n, in.number("other"), fill),
          several_addresses_early(shape, n, fill),
          several_addresses_last(shape, n, fill),
          several_addresses(shape, n, fill),
          left_after_forgetting_all(shape, n, ForgetOrder::oldest_first, fill),
          filters > kMostFollowed ? kNone
                                  : left_after_forgetting_all(shape, n, ForgetOrder::random, fill),
          ask_first_ratio(shape, n),
          wasted_filters(shape, n),
          standard_size_ratio(shape, std::max(filters, 1.0)),
          standard_same_memory_fpr(shape, n),
          filter_fpr(shape, n, fill),
          dynamic_keys(shape, limit),
          standard_rebuild_at(shape, limit),
          dynamic_rebuild_at(shape, limit)};
}

constexpr ModelParameter kSizingTakes[] = {
    {"bound", "N: the most keys a set may have", Takes::whole, "", 1, 1e6},
    {"fpr", "ε: the error that no set may exceed", Takes::chance, ""},
    {"sizes", "how likely the sizes 1 to N are", Takes::choice, "uniform", 0, 0,
     "uniform normal zipf-min zipf-max zipf-random"},
    {"exponent", "of Zipf's law", Takes::number, "0.4", 0, 8},
    {"mean", "of the normal sizes", Takes::number, "N/2", 0, 1e6, {}, true},
    {"deviation", "of the normal sizes: σ", Takes::number, "20", 1e-3, 1e6},
    {"seed", "seed of the random order of Zipf's probabilities", Takes::whole, "1", 0, 1e15},
    {"most", "the most filters to try", Takes::whole, "256", 1, 4096}};
constexpr ModelOutput kSizingTells[] = {{"filters", "s*: filters that the bound is divided into"},
                                        {"filter_fpr", "error of each: 1 − (1 − ε)^(1/s)"},
                                        {"m", "bits of a filter"},
                                        {"k", "probes"},
                                        {"c", "keys that fill a filter"},
                                        {"expected_bits", "bits of the filters in use, on average"},
                                        {"standard_bits", "bits of one filter for the bound"},
                                        {"saving", "1 − expected/standard"}};
SetSizes sizes_of(const ModelArguments& in, std::uint64_t bound) {
  const std::string_view sizes = in.choice("sizes");
  const double exponent = in.number("exponent");
  if (sizes == "uniform") return uniform_sizes(bound);
  if (sizes == "zipf-min") return zipf_sizes(bound, exponent, ZipfOrder::minimum);
  if (sizes == "zipf-max") return zipf_sizes(bound, exponent, ZipfOrder::maximum);
  if (sizes == "zipf-random")
    return random_zipf_sizes(bound, exponent, static_cast<std::uint64_t>(in.number("seed")));
  const double mean = in.given("mean") ? in.number("mean") : static_cast<double>(bound) / 2;
  return normal_sizes(bound, mean, in.number("deviation"));
}
std::vector<double> sizing(const ModelArguments& in) {
  const auto bound = static_cast<std::uint64_t>(in.number("bound"));
  const BoundedPlan plan = least_memory(sizes_of(in, bound), in.number("fpr"), in.whole("most"));
  return {static_cast<double>(plan.filters),
          plan.filter_fpr,
          plan.shape.bits,
          static_cast<double>(plan.shape.probes),
          plan.shape.capacity,
          plan.expected_bits,
          plan.standard_bits,
          plan.saving()};
}

constexpr ModelParameter kIntersectionTakes[] = {
    kBits,
    kProbes,
    {"only-a", "keys that only the first filter has", Takes::number, "", 0, kMostKeys},
    {"only-b", "keys that only the second has", Takes::number, "", 0, kMostKeys},
    {"common", "keys that both have", Takes::number, "0", 0, kMostKeys}};
constexpr ModelOutput kIntersectionTells[] = {
    {"chance_bound",
     "lower bound of the chance that the AND is the filter of the common keys (theorem 3)"},
    {"chance", "the exact chance: a bit that a common key sets as well does no harm"}};
std::vector<double> intersection(const ModelArguments& in) {
  const double m = in.number("m"), a = in.number("only-a"), b = in.number("only-b");
  const unsigned k = in.whole("k");
  return {intersection_chance_bound(m, k, a, b),
          intersection_chance(m, k, a, b, in.number("common"))};
}

constexpr ModelParameter kTransferTakes[] = {
    {"transfer", "bits per key that may be sent", Takes::number, "", 0.1, 1000},
    {"memory", "bits per key in memory", Takes::number, "twice --transfer", 0.1, 1e6, {}, true}};
constexpr ModelOutput kTransferTells[] = {
    {"k", "number of probes with the lowest error"},
    {"memory_bits_per_key", "in memory"},
    {"transfer_bits_per_key", "compressed as far as possible"},
    {"fpr", "error"},
    {"plain_fpr", "error of a filter that is sent as it is: .6185^transfer"}};
std::vector<double> transfer(const ModelArguments& in) {
  const double sent = in.number("transfer");
  const double memory = in.given("memory") ? in.number("memory") : 2 * sent;
  refuse_unless(memory >= sent, "model 'transfer': --memory is less than --transfer");
  const CompressedShape shape = best_compressed_shape(sent, memory);
  return {static_cast<double>(shape.probes), shape.bits_per_key, shape.transfer_per_key, shape.fpr,
          std::exp(-sent * std::pow(std::log(2.0), 2))};
}

constexpr ModelParameter kTighteningTakes[] = {
    {"fpr", "the error of any number of filters together", Takes::chance, ""},
    {"ratio", "r: each filter's error / that of the one before", Takes::chance, "0.5"},
    {"filters", "filters so far", Takes::whole, "1", 1, 4096}};
constexpr ModelOutput kTighteningTells[] = {
    {"last_fpr", "error allowed for the last of them: fpr · (1 − r) · r^(filters − 1)"},
    {"sum", "error allowed for all of them: fpr · (1 − r^filters)"}};
std::vector<double> tightening(const ModelArguments& in) {
  const double fpr = in.number("fpr"), ratio = in.number("ratio");
  const unsigned filters = in.whole("filters");
  return {tightened_fpr(fpr, ratio, filters - 1), tightened_sum(fpr, ratio, filters)};
}

constexpr ModelInfo kModels[] = {
    {"dynamic", "a series of equal Bloom filters (Guo et al. 2010, §3 and §4.1)", kDynamicTakes,
     kDynamicTells, dynamic},
    {"dynamic-sizing", "the series with the least memory for a known bound (Guo et al. 2010, §4.2)",
     kSizingTakes, kSizingTells, sizing},
    {"intersection", "the AND of two Bloom filters (Guo et al. 2010, §2.2)", kIntersectionTakes,
     kIntersectionTells, intersection},
    {"transfer", "a Bloom filter sent compressed (Guo et al. 2010, §3.5.2)", kTransferTakes,
     kTransferTells, transfer},
    {"tightening", "a series whose errors shrink, so that their sum is bounded", kTighteningTakes,
     kTighteningTells, tightening},
};

}  // namespace

std::span<const ModelInfo> dynamic_models() {
  return kModels;
}

}  // namespace sluice::model
