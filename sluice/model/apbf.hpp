// Errors, costs and sizes of age-partitioned Bloom filters (Shtul, Baquero & Almeida 2020).
//
// Such a filter is a row of k + l segments, youngest first. A key written `age` generations ago was
// set in segments age … age + k − 1, and a key is found if k segments in a row match. The formulas
// need only the chance that a segment matches a key that it does not hold. For plain bits that is the
// share of set bits, for blocks the error of a blocked Bloom filter. The paper's "slices" are called
// segments here; a segment may consist of several parts, with one bit per key in each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::model {

// How full segments are just before a shift, when the error is worst. `linear` is the paper's
// (i+1)/2k, a lower bound. The exact fill of a segment with i+1 of its k generations is
// 1 − 2^−(i+1)/k.
enum class Fills : std::uint8_t { linear, exact };

// Match chances of all k + l segments when a share `phase` of the youngest generation is written,
// with `parts` parts per segment. By default just before a shift, when all of it is written.
std::vector<double> segment_matches(unsigned k, unsigned l, Fills fills, unsigned parts = 1,
                                    double phase = 1);

// F(k, l, 0, 0): the chance that somewhere k segments in a row match, for independent segments.
double run_of_matches(std::span<const double> matches, unsigned k);
// The same for the first 1, 2, … segments.
std::vector<double> runs_of_matches(std::span<const double> matches, unsigned k);

// The worst-case error of plain bits: run_of_matches over segment_matches.
double apbf_fpr(unsigned k, unsigned l, Fills fills = Fills::exact, unsigned parts = 1);
// The same with exact fills for every l from 0 to most_l, at the cost of one.
std::vector<double> apbf_fprs(unsigned k, unsigned most_l, unsigned parts = 1);
// Its mean from one shift to the next.
double apbf_mean_fpr(unsigned k, unsigned l, Fills fills = Fills::exact, unsigned parts = 1);

// The most generations l with a worst-case error of at most `fpr`: the inverse of apbf_fpr in l. 0
// when one is too many; at most kMostGenerations.
unsigned apbf_generations(unsigned k, double fpr, Fills fills = Fills::exact);
inline constexpr unsigned kMostGenerations = 4096;

// A plain Bloom filter of k half-full parts (§4.2, Table 1): the fewest parts for an error of `fpr`,
// and how many are read when it says `distinct`. When it says `duplicate`, all k are read.
unsigned half_full_parts(double fpr);
double half_full_negative_accesses(unsigned k);

// Segments that a query looks at, on average (recursion A and its two likes).
struct QueryAccesses {
  double window;    // of a key in the window, over generations 0 … l − 1
  double positive;  // of a key never written, when the query says `duplicate`
  double negative;  // the same, when it says `distinct`
};
QueryAccesses query_accesses(std::span<const double> matches, unsigned k);
// Only the last of these, which costs l times less.
double negative_accesses(std::span<const double> matches, unsigned k);

// Keys beyond the window that are still reported, as a share of the window: all k generations of
// the slack, and weighted by their chance of being reported (peak NPWS). `full` is the match chance
// of a full segment: ½ for plain bits, less if it has several parts, and block_match for blocks.
double apbf_slack(unsigned k, unsigned l);
double apbf_npws(unsigned k, unsigned l, double full = 0.5);
// The same of k + l segments with these match chances.
double apbf_npws(std::span<const double> matches, unsigned k);

// Bits per key of the window, and the memory of a plain Bloom filter of the same error against it.
double apbf_bits(unsigned k, unsigned l, unsigned parts = 1);
double apbf_efficiency(unsigned k, unsigned l, double fpr);

// --- segments of blocks -------------------------------------------------------------------------

// A block of `block` bits in `bits` lanes; a key sets one bit per lane.
struct BlockShape {
  unsigned block = 512;  // B
  unsigned bits = 8;     // b
  double lane() const { return static_cast<double>(block) / bits; }
};

// Keys that fill half of a block: ln 2 / −ln(1 − 1/lane).
double block_capacity(const BlockShape& shape);

// Error of a blocked filter with `mean` keys per block: E[(1 − (1 − 1/lane)^X)^bits], X Poisson.
double block_match(const BlockShape& shape, double mean);
// The same with `keys` keys in exactly `blocks` blocks: X is binomial. Few blocks fill more evenly.
double block_match(const BlockShape& shape, double keys, double blocks);

// Match chances of all k + l segments just before a shift: segment i holds min(i+1, k)/k of what
// fills its blocks.
std::vector<double> block_matches(unsigned k, unsigned l, const BlockShape& shape);

double apbbf_fpr(unsigned k, unsigned l, const BlockShape& shape);
double apbbf_bits(unsigned k, unsigned l, const BlockShape& shape);

// --- any fill -----------------------------------------------------------------------------------

// From the keys written in each generation, youngest first (one number per segment): how many keys
// each segment holds, of its own generation and of the k − 1 before it. `again`: of each segment, how many
// of these it was given more than once, because they came again (`refreshed`); empty: none.
std::vector<double> keys_in_segments(std::span<const double> generations, unsigned k,
                                     std::span<const double> again = {});
// The keys of each generation, less its share of those that its segments had already.
std::vector<double> without_again(std::span<const double> generations, unsigned k,
                                  std::span<const double> again);

// The error if a key's blocks in all segments are adjacent in one column: a crowded column is
// crowded in every segment, so matches are not independent. `generations` are the keys of each
// generation, youngest first, in `columns` columns. There is no closed form: columns are drawn from a
// fixed seed, crowded ones more often, as those are what errs. The relative standard error is 2 % or
// less. Some 0.2 ms.
double column_fpr_at(std::span<const double> generations, unsigned k, const BlockShape& shape,
                     double columns);
// The same just before a shift, all generations full: from a table for the shapes that a planner
// chooses from (column_errors.hpp), from a sample for others.
double column_fpr(unsigned k, unsigned l, const BlockShape& shape);
// From a plain sample, with a relative standard error of about 2 % at 10⁻⁴.
double sampled_column_fpr(unsigned k, unsigned l, const BlockShape& shape,
                          unsigned samples = 65536);

}  // namespace sluice::model
