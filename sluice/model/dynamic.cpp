#include "sluice/model/dynamic.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

// ln(1 − f) of one filter: logarithms add up where products of chances near 1 lose digits.
double log_miss(const DynamicShape& shape, double keys, Fill fill) {
  return std::log1p(-filter_fpr(shape, keys, fill));
}

// ln of the chance that no filter of a series errs.
double log_miss_all(const DynamicShape& shape, double keys, Fill fill) {
  if (keys <= 0) return 0;
  return (dynamic_filters(shape, keys) - 1) * log_miss(shape, shape.capacity, fill) +
         log_miss(shape, dynamic_last_keys(shape, keys), fill);
}

double any(double log_none) {
  return -std::expm1(log_none);
}

// Σ_{i < filters} (1 − (1 − f)^i): found among i full filters, summed over the filters.
double sum_found_in_others(double filters, double fpr) {
  double sum = 0;
  for (double others = 1; others < filters; ++others) sum += any(others * std::log1p(-fpr));
  return sum;
}

// Keys leave all filters alike, in steps of a thousandth; the two smallest filters are merged as
// soon as they fit into one.
double left_in_random_order(const DynamicShape& shape, double keys, Fill fill) {
  constexpr int kSteps = 1000;
  std::vector<double> held(static_cast<std::size_t>(dynamic_filters(shape, keys)), shape.capacity);
  held.front() = dynamic_last_keys(shape, keys);  // of all that were inserted; rising
  double left = 0;
  for (int step = 0; step < kSteps && held.size() > 1; ++step) {
    const double remain = 1 - (step + 0.5) / kSteps;
    while (held.size() > 1 && (held[0] + held[1]) * remain <= shape.capacity) {
      const double merged = held[0] + held[1];
      held.erase(held.begin(), held.begin() + 2);
      held.insert(std::ranges::upper_bound(held, merged), merged);
    }
    double log_none = 0;
    for (const double each : held) log_none += log_miss(shape, each * remain, fill);
    for (const double each : held)
      left += each / keys * any(log_none - log_miss(shape, each * remain, fill)) / kSteps;
  }
  return left;
}

double entropy(double share) {
  if (share <= 0 || share >= 1) return 0;
  return -share * std::log2(share) - (1 - share) * std::log1p(-share) / std::log(2.0);
}

double transfer_of(double bits_per_key, unsigned probes) {
  return compressed_bits(bits_per_key, any(-(probes / bits_per_key)));
}

CompressedShape shape_of(double bits_per_key, unsigned probes) {
  return {probes, bits_per_key, transfer_of(bits_per_key, probes),
          bloom_fpr_limit(bits_per_key, probes, 1)};
}

}  // namespace

// Eq. 1.
double filter_fpr(const DynamicShape& shape, double keys, Fill fill) {
  return fill == Fill::mean ? bloom_fpr_limit(shape.bits, shape.probes, keys)
                            : bloom_fpr_exact(shape.bits, shape.probes, keys);
}

double dynamic_filters(const DynamicShape& shape, double keys) {
  return std::max(1.0, std::ceil(keys / shape.capacity));
}

double dynamic_last_keys(const DynamicShape& shape, double keys) {
  return keys - shape.capacity * (dynamic_filters(shape, keys) - 1);
}

// Eq. 3.
double dynamic_fpr(const DynamicShape& shape, double keys, Fill fill) {
  return any(log_miss_all(shape, keys, fill));
}

// Eq. 12.
double dynamic_fpr_full(const DynamicShape& shape, double keys, Fill fill) {
  return any(dynamic_filters(shape, keys) * log_miss(shape, shape.capacity, fill));
}

double dynamic_keys(const DynamicShape& shape, double fpr) {
  const double each = log_miss(shape, shape.capacity, Fill::mean);
  const double full = std::floor(std::log1p(-fpr) / each);
  // What the full ones leave of the error is the last filter's.
  const double rest = std::max(0.0, any(std::log1p(-fpr) - full * each));
  return full * shape.capacity + bloom_keys_limit(shape.bits, shape.probes, rest);
}

// Eq. 4.
double dynamic_union_fpr(const DynamicShape& shape, double keys_a, double keys_b, Fill fill) {
  return any(log_miss_all(shape, keys_a, fill) + log_miss_all(shape, keys_b, fill));
}

// Theorem 3.
double intersection_chance_bound(double bits, unsigned probes, double only_a, double only_b) {
  return std::exp(1.0 * probes * probes * only_a * only_b * std::log1p(-1 / bits));
}

double intersection_chance(double bits, unsigned probes, double only_a, double only_b,
                           double common) {
  const double miss = probes * std::log1p(-1 / bits);
  // A bit does harm when both sides set it and no common key does.
  const double harm = any(only_a * miss) * any(only_b * miss) * std::exp(common * miss);
  return std::exp(bits * std::log1p(-harm));
}

// Eq. 9.
double several_addresses_early(const DynamicShape& shape, double keys, Fill fill) {
  const double filters = dynamic_filters(shape, keys);
  if (filters < 2) return 0;
  return any((filters - 2) * log_miss(shape, shape.capacity, fill) +
             log_miss(shape, dynamic_last_keys(shape, keys), fill));
}

// Eq. 10.
double several_addresses_last(const DynamicShape& shape, double keys, Fill fill) {
  return any((dynamic_filters(shape, keys) - 1) * log_miss(shape, shape.capacity, fill));
}

double several_addresses(const DynamicShape& shape, double keys, Fill fill) {
  if (keys <= 0) return 0;
  const double last = dynamic_last_keys(shape, keys);
  return ((keys - last) * several_addresses_early(shape, keys, fill) +
          last * several_addresses_last(shape, keys, fill)) /
         keys;
}

double left_after_forgetting_all(const DynamicShape& shape, double keys, ForgetOrder order,
                                 Fill fill) {
  if (keys <= 0) return 0;
  if (order == ForgetOrder::random) return left_in_random_order(shape, keys, fill);
  const double full = dynamic_filters(shape, keys) - 1;
  const double last_keys = dynamic_last_keys(shape, keys);
  const double each = log_miss(shape, shape.capacity, fill);
  const bool oldest_first = order == ForgetOrder::oldest_first;
  // Beside a key of a full filter stand i other full ones, and the last unless it went first.
  const double last = oldest_first ? log_miss(shape, last_keys, fill) : 0;
  double left = oldest_first ? 0 : last_keys * any(full * each);
  for (double others = 0; others < full; ++others)
    left += shape.capacity * any(others * each + last);
  return left / keys;
}

// §3.5.1.
double ask_first_ratio(const DynamicShape& shape, double keys) {
  return keys * several_addresses_last(shape, keys) / shape.capacity;
}

bool ask_first(const DynamicShape& shape, double keys) {
  return ask_first_ratio(shape, keys) >= 1;
}

double wasted_filters(const DynamicShape& shape, double keys) {
  const double fpr = filter_fpr(shape, shape.capacity);
  const double full = std::floor(keys / shape.capacity);
  const double rest = keys / shape.capacity - full;
  return sum_found_in_others(full, fpr) + rest * any(full * std::log1p(-fpr));
}

// Eq. 13.
double standard_size_ratio(const DynamicShape& shape, double filters) {
  const double fpr = any(filters * log_miss(shape, shape.capacity, Fill::mean));
  return shape.capacity / bloom_keys_limit(shape.bits, shape.probes, fpr);
}

// Eq. 14.
double standard_same_memory_fpr(const DynamicShape& shape, double keys) {
  return bloom_fpr_limit(shape.bits * dynamic_filters(shape, keys), shape.probes, keys);
}

double tightened_fpr(double total, double ratio, unsigned index) {
  return total * (1 - ratio) * std::pow(ratio, index);
}

double tightened_sum(double total, double ratio, unsigned filters) {
  return total * (1 - std::pow(ratio, filters));
}

double compressed_bits(double bits, double fill) {
  return bits * entropy(fill);
}

// §3.5.2.
CompressedShape compressed_shape(double transfer_per_key, unsigned probes) {
  const auto transfer = [&](double bits_per_key) { return transfer_of(bits_per_key, probes); };
  // Compressed size rises with the size in memory: halve until it is met.
  double low = 0, high = std::max(transfer_per_key, 1.0);
  while (transfer(high) < transfer_per_key && high < 1e18) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-13 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (transfer(middle) < transfer_per_key ? low : high) = middle;
  }
  return shape_of(high, probes);
}

CompressedShape best_compressed_shape(double transfer_per_key, double most_bits_per_key) {
  // Uncompressed: a filter of half-set bits, which is always within the memory.
  const unsigned usual = bloom_probes(transfer_per_key, 1);
  CompressedShape best{usual, transfer_per_key, transfer_per_key,
                       bloom_fpr_limit(transfer_per_key, usual, 1)};
  for (unsigned probes = 1; probes <= usual; ++probes) {
    CompressedShape shape = compressed_shape(transfer_per_key, probes);
    // Too large: as large as may be, and less to send.
    if (shape.bits_per_key > most_bits_per_key) shape = shape_of(most_bits_per_key, probes);
    if (shape.fpr < best.fpr) best = shape;
  }
  return best;
}

}  // namespace sluice::model
