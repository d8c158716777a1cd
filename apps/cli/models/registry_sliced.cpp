// Models of one filter over many sites (Koloniari et al. 2011).
#include <algorithm>
#include <cmath>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::model {
namespace {

constexpr ModelParameter kSlicedTakes[] = {
    {"layout", "how the filter is cut", Takes::choice, "vertical", 0, 0,
     "horizontal vertical hv-diced vh-diced"},
    {"m", "bits in total", Takes::number, "", 2, kMostBits},
    kProbes,
    {"n", "keys in total", Takes::number, "", 0, 1e10},
    {"slices", "S", Takes::whole, "", 1, 1e6},
    {"inner", "S': diced, parts of each slice", Takes::whole, "1", 1, 1000},
    {"failed", "f: sites that failed", Takes::whole, "0", 0, 1e6},
    {"rule", "verdict on a key with bits that cannot be reached", Takes::choice, "duplicate", 0, 0,
     "duplicate distinct hybrid"},
    {"x", "bits that must be reached for a duplicate, with --rule hybrid", Takes::whole, "1", 0,
     64},
    {"distinct", "share of records that are distinct, for messages", Takes::number, "0.5", 0, 1},
    {"limit", "the error that sites are solved for", Takes::chance, "0.15"}};
constexpr ModelOutput kSlicedTells[] = {
    {"sites", "S, or S · S' when diced"},
    {"density", "ρ: share of set bits, by fpr_all_alive"},
    {"fpr_whole", "error of the undivided filter (eq. 1)"},
    {"fpr_even", "all sites alive, every slice with n/S keys (eqs. 3, 4)"},
    {"fpr_all_alive",
     "all sites alive, a binomial number of keys per slice; agrees with measurements"},
    {"failed_share", "φ = f/S"},
    {"fpr", "false positives with f sites failed, by --rule"},
    {"fnr", "false negatives with f sites failed, by --rule"},
    {"fpr_rows", "diced: false positives if the failed sites are drawn at random"},
    {"fnr_rows", "diced: false negatives in the same way"},
    {"sites_for_fpr", "S_f: sites that keep false positives at --limit, rule duplicate"},
    {"sites_for_fnr", "the same for false negatives, by --rule"},
    {"wire_bits", "bits to send the positions of a key: k · log2 of a site's bits"},
    {"messages", "sites that have bits of a key"},
    {"messages_pipelined", "sites asked in turn until one decides, with --distinct, full filter"},
    {"messages_filling", "the same over a stream that fills the filter"}};

Slicing slicing_of(std::string_view layout) {
  if (layout == "horizontal") return Slicing::horizontal;
  if (layout == "vertical") return Slicing::vertical;
  return layout == "hv-diced" ? Slicing::horizontal_vertical : Slicing::vertical_horizontal;
}

FaultRule rule_of(const ModelArguments& in) {
  if (in.choice("rule") == "duplicate") return FaultRule::duplicate();
  const unsigned k = in.whole("k");
  return in.choice("rule") == "distinct" ? FaultRule::distinct(k)
                                         : FaultRule::hybrid(in.whole("x"));
}

std::vector<double> sliced(const ModelArguments& in) {
  const SlicedFilter filter{.slicing = slicing_of(in.choice("layout")),
                            .bits = in.number("m"),
                            .probes = in.whole("k"),
                            .keys = in.number("n"),
                            .slices = in.whole("slices"),
                            .inner = in.whole("inner")};
  const FaultRule rule = rule_of(in);
  const unsigned failed = in.whole("failed");
  refuse_unless(failed <= filter.sites(), "model 'sliced': --failed is more than there are sites");
  refuse_unless(rule.least_live <= filter.probes, "model 'sliced': --x is more than --k");
  refuse_unless(filter.bits >= 2.0 * filter.sites(),
                "model 'sliced': a slice has less than 2 bits");
  const SlicedErrors errors = sliced_errors(filter, failed, rule);
  const SlicedErrors rows = diced_errors(filter, failed, rule);
  const double limit = in.number("limit"), distinct = in.number("distinct");
  const double all = sites_of_key(filter), density = sliced_density(filter);
  const auto messages = [&](double of_distinct) {
    return distinct * of_distinct + (1 - distinct) * all;
  };
  return {static_cast<double>(filter.sites()),
          density,
          bloom_fpr(filter.bits, filter.probes, filter.keys),
          sliced_fpr_even(filter),
          sliced_fpr(filter),
          static_cast<double>(failed) / filter.sites(),
          errors.fpr,
          errors.fnr,
          rows.fpr,
          rows.fnr,
          fault_tolerance(filter, failed, limit),
          fault_tolerance_fnr(filter, failed, limit, rule),
          wire_bits(filter),
          all,
          messages(pipelined_sites(filter, density)),
          messages(pipelined_sites_filling(filter))};
}

constexpr ModelParameter kSlicingTakes[] = {
    {"m", "bits in total", Takes::number, "", 2, kMostBits},
    {"n", "keys in total", Takes::number, "", 0, 1e10},
    {"slices", "S", Takes::whole, "", 1, 1e6},
    {"k1", "slices per key, at most S", Takes::whole, "", 1, 64},
    {"k2", "bits in each of them", Takes::whole, "", 1, 64}};
constexpr ModelOutput kSlicingTells[] = {
    {"fpr_whole", "error of the undivided filter with k1 · k2 probes (eq. 1)"},
    {"fpr_even", "every slice with n · k1/S keys: the same for all k1 · k2 (Prop. 2)"},
    {"fpr", "a binomial number of keys per slice; agrees with measurements"},
    {"wire_bits", "bits to send the positions of a key: k1 · k2 · log2(m/S)"},
    {"messages", "k1"}};
std::vector<double> slicing(const ModelArguments& in) {
  const GeneralSlicing cut{.bits = in.number("m"),
                           .keys = in.number("n"),
                           .slices = in.whole("slices"),
                           .slices_per_key = in.whole("k1"),
                           .bits_per_slice = in.whole("k2")};
  refuse_unless(cut.slices_per_key <= cut.slices, "model 'slicing': --k1 is more than --slices");
  refuse_unless(cut.bits >= 2.0 * cut.slices, "model 'slicing': a slice has less than 2 bits");
  const unsigned k = cut.slices_per_key * cut.bits_per_slice;
  return {bloom_fpr(cut.bits, k, cut.keys), general_fpr_even(cut), general_fpr(cut),
          k * std::log2(cut.bits / cut.slices), static_cast<double>(cut.slices_per_key)};
}

constexpr ModelParameter kLoadTakes[] = {
    {"slices", "S", Takes::whole, "", 1, 1e6},
    {"k", "slices that a key's load is spread over: 1 is horizontal", Takes::whole, "", 1, 64},
    {"n", "keys", Takes::number, "", 1, 1e7},
    {"skew", "the key of rank r is asked in proportion to 1/r^skew", Takes::number, "1", 0, 8}};
constexpr ModelOutput kLoadTells[] = {
    {"fairness", "Jain's: 1/(1 + (S − 1) Σp²/k), 1 when all loads are equal"},
    {"concentration", "Σp²: chance that two records have the same key"},
    {"highest_load", "share of the slice with the highest load, at best 1/S; drawn, ±2 %"},
    {"highest_load_deviation", "its standard deviation: the variation between runs"}};
std::vector<double> load(const ModelArguments& in) {
  const double concentration = zipf_concentration(in.number("n"), in.number("skew"));
  const unsigned slices = in.whole("slices"), k = in.whole("k");
  const HighestLoad highest = zipf_highest_load(slices, k, in.number("n"), in.number("skew"));
  return {expected_fairness(slices, k, concentration), concentration, highest.mean,
          highest.deviation};
}

constexpr ModelParameter kGrowthTakes[] = {
    {"m", "bits of a filter", Takes::number, "", 2, kMostBits},
    kProbes,
    {"fpr", "the error at which a filter is full", Takes::chance, ""},
    {"filters", "g: live filters", Takes::whole, "2", 1, 1e6},
    {"set",
     "z: set bits of a filter",
     Takes::number,
     "as many as make it full",
     0,
     kMostBits,
     {},
     true}};
constexpr ModelOutput kGrowthTells[] = {
    {"keys", "the threshold by cardinality: ln(1 − P^(1/k))/(k ln(1 − 1/m))"},
    {"keys_limit", "the same for large m: −m/k · ln(1 − P^(1/k))"},
    {"set_bits", "the threshold by density: z = m · P^(1/k)"},
    {"set_fpr", "error of --set bits: (z/m)^k"},
    {"all_fpr", "error of g full filters: 1 − (1 − P)^g; the paper's bound is P"},
    {"share_fpr", "error allowed for each of g filters, so that all keep P"}};
std::vector<double> growth(const ModelArguments& in) {
  const double m = in.number("m"), fpr = in.number("fpr");
  const unsigned k = in.whole("k"), filters = in.whole("filters");
  const double full = growth_density(m, k, fpr);
  const double set = in.given("set") ? in.number("set") : full;
  refuse_unless(set <= m, "model 'growth': --set is more than --m");
  return {bloom_keys(m, k, fpr),         bloom_keys_limit(m, k, fpr), full,
          growth_density_fpr(m, k, set), growth_fpr(fpr, filters),    growth_share(fpr, filters)};
}

constexpr ModelInfo kModels[] = {
    {"sliced", "a Bloom filter over many sites, some of which failed (Koloniari et al. 2011, §3)",
     kSlicedTakes, kSlicedTells, sliced},
    {"slicing", "any way to slice a Bloom filter: k1 slices per key, k2 bits in each (Prop. 2)",
     kSlicingTakes, kSlicingTells, slicing},
    {"load", "how evenly slices are asked on a skewed stream (Koloniari et al. 2011, §7)",
     kLoadTakes, kLoadTells, load},
    {"growth",
     "when a filter is full, and the error of several live ones (Koloniari et al. 2011, §5)",
     kGrowthTakes, kGrowthTells, growth},
};

}  // namespace

std::span<const ModelInfo> sliced_models() {
  return kModels;
}

}  // namespace sluice::model
