// Dynamic Bloom filter: a set of unknown size, as a series of Bloom filters to which filters are
// added.
//
// Source   Guo, Wu, Chen, Yuan, Luo 2010, §3. A key goes to the first filter that is not full; when
//          all are, another is added. A key is contained when any filter claims it.
// Differs  Positions as in bloom.hpp: the paper's double hashing has a 15 % higher error. A union
//          joins filters that together hold at most one capacity (the paper's code says less than
//          one); forgetting, at most three quarters, so that there is time to join them before
//          another filter is needed. `insert` asks first unless ask=auto, which begins to ask by the paper's rule
//          (§3.5.1). `tighten` makes each filter stricter and larger than the one before, so that
//          the total error stays below one bound for any number of keys.
// Cost     plain: about two cache lines per filter, and a line per probe in the one that is written.
//          matrix: one line per probe for up to 64 filters; up to a third of a row is unused.
//          Growing allocates. Wider rows are filled over the next quarter of a filter's keys; until
//          then both widths take memory, and a probe reads up to two lines. Filters are joined in
//          the same way, over the next keys that are written or forgotten.
// Errors   `duplicate` may be wrong: 1 − Π(1 − fᵢ), so s full filters have about s times the error
//          of one. `distinct` never is, as long as only keys that were judged distinct are
//          forgotten. A key that several filters claim is not forgotten but kept, and counted.
//          Forgetting a key that was never written may erase the traces of others: at the rate of
//          a false positive, about 0.69 probes of them (counting.hpp).
// Use it   when the number of keys is not known, keys are to be taken back, or sites exchange sets.
// Avoid    when the number is known: one filter for all of them is smaller and faster.
// Format   snapshot kind 5, version 1: a sequence of pieces, one per filter, the same for both
// layouts.
#pragma once

#include "sluice/filters/contract.hpp"
#include "sluice/filters/dynamic/bit_matrix.hpp"
#include "sluice/filters/dynamic/dynamic_piece.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

// What is known about a series beyond FilterStats.
struct DynamicStats {
  std::uint64_t filters = 0;  // s
  std::uint64_t kept = 0;     // keys to be forgotten that several filters claimed, and so were kept
  // Keys that the present filters can hold within their errors: their capacities minus the kept
  // keys, which take up room forever (§3.4). A kept key that a later forget does find is still
  // counted.
  std::uint64_t real_capacity = 0;
  std::uint64_t room = 0;    // keys that fit before another filter is added
  bool insert_asks = false;  // whether insert asks before it writes
};

class DynamicPieces;

class Dynamic {
 public:
  static constexpr FilterKind kKind = FilterKind::dynamic;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.fixed_memory = false};

  enum class Layout : std::uint8_t { plain = 0, matrix = 1 };
  enum class Ask : std::uint8_t { always = 0, by_rule = 1 };

  struct Params {
    std::uint64_t bits = 0;      // m of one filter; with `tighten`, of the first
    unsigned probes = 0;         // k
    std::uint64_t capacity = 0;  // c
    double target_fpr = 0;       // of one full filter; with `tighten`, of all, at any size
    bool forget = false;
    Layout layout = Layout::plain;
    Ask ask = Ask::always;
    double tighten = 0;   // r: each filter's error is r times that of the one before; 0: the same
    unsigned growth = 1;  // each capacity is this many times the previous one

    static std::span<const ParameterInfo> known();
    // Throws BadParameters.
    static Params from(const Wish& wish, const Settings& settings);
    Settings settings() const;
    // For a series that holds `keys`.
    Forecast forecast(std::uint64_t keys) const;
    // Filter number `index`, from 0.
    DynamicShape shape(std::size_t index) const;
    // Keys by which work on whole tables is done. All rows of a matrix have been widened: long
    // before they must be widened again. Two filters are one table.
    std::uint64_t moved_within() const noexcept { return capacity / 4 + 1; }
    // forget() joins two filters that together hold at most this many keys.
    std::uint64_t joined_up_to() const noexcept { return capacity - moved_within(); }
    // A sentence if the parameters are impossible; otherwise empty.
    std::string what_is_wrong() const;
    // Whether filters of the two can be merged: all but layout and ask.
    bool same_series(const Params& other) const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Dynamic make(const Params& params, MemoryResource& memory = default_memory());

  // Throw NoMemory when there is none for another filter; the key is then not written.
  Verdict observe(const Digest& digest);
  void insert(const Digest& digest);
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  std::size_t insert(std::span<const Digest> digests);
  bool may_contain(const Digest& digest) const noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  void clear() noexcept;

  // Takes back a key that was judged distinct, if exactly one filter claims it; returns whether it
  // did. Afterwards two filters that fit into one with room to spare are joined, some of
  // their counters with each key that comes.
  bool forget(const Digest& digest) noexcept;
  bool can_forget() const noexcept { return params_.forget; }

  // The union: the filters of both (Def. 3), merged where two fit into one. A key that both series
  // hold is then claimed by two filters, and cannot be forgotten (it is kept). Throws
  // BadParameters.
  void merge(const Dynamic& other);
  bool can_merge() const noexcept { return params_.tighten == 0; }

  // The intersection: a key is in it exactly if it is in both. Each filter of one is intersected with
  // each of the other (Def. 2), and empty results are dropped: at most the product of their
  // numbers. Bits only. Throws BadParameters.
  static Dynamic intersect(const Dynamic& a, const Dynamic& b);

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept {
    return matrix_.taken() + taken_by(pieces_) + taken_by(joins_) + pieces_taken_;
  }
  MemoryResource& memory() const noexcept { return matrix_.memory(); }
  DynamicStats series() const;

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Dynamic decode(Decoder& header, Decoder& payload,
                        MemoryResource& memory = default_memory());

 private:
  friend class DynamicPieces;
  Dynamic(const Params& params, MemoryResource& memory);

  bool in_matrix() const noexcept { return params_.layout == Layout::matrix; }
  bool claims(ProbeWords& words) const noexcept;
  void add(ProbeWords& words);
  void append(const DynamicShape& shape);
  void push_piece(DynamicPiece piece);
  void adopt(DynamicPiece piece);
  void adopt_some(DynamicPieces& pieces);
  DynamicPiece copy_of(std::size_t index, MemoryResource& memory) const;
  void combine(std::size_t into, std::size_t from, bool at_once) noexcept;
  void combine_all() noexcept;
  void remove(std::size_t index) noexcept;
  void series_changed();
  void sample_words(std::size_t index, std::span<std::uint64_t> out) const noexcept;
  bool find_overlaps(std::uint64_t most_words);
  void find_overlaps();
  std::uint64_t table_bytes() const noexcept;

  // One filter that has left the series, and is still to be added to another.
  struct Join {
    std::size_t into = 0;
    std::uint64_t joined = 0;  // words before this one were added
    LineTable rest;
  };
  // dynamic_joins.cpp
  template <class Act>
  void each_rest(std::size_t index, std::uint64_t at, Act act) const noexcept;
  std::span<const Join> joins_into(std::size_t index) const noexcept;
  bool is_joining(std::size_t index) const noexcept;
  void sort_joins() noexcept;
  bool piece_claims(std::size_t index, ProbeWords& words) const noexcept;
  void erase(std::size_t index, ProbeWords& words) noexcept;
  void join_later(std::size_t into, std::size_t from) noexcept;
  void join_some(Join& join, std::uint64_t words) noexcept;
  void join_some() noexcept;
  void join_rests() noexcept;
  void drop_joined() noexcept;
  void joined_words(std::size_t index, std::uint64_t first,
                    std::span<std::uint64_t> out) const noexcept;
  void add_rests(std::size_t index, std::uint64_t first,
                 std::span<std::uint64_t> words) const noexcept;

  template <class Judge>
  void ahead(std::span<const Digest> digests, unsigned probes, Judge judge) const;
  Verdict observe(ProbeWords& words);
  void insert(ProbeWords& words);

  Params params_;
  Vector<DynamicPiece> pieces_;
  BitMatrix matrix_;
  Vector<Join> joins_;
  std::uint64_t pieces_taken_ = 0;  // by the tables of all pieces, and those still to be joined
  std::size_t active_ = 0;          // no filter before it has room
  std::uint64_t keys_ = 0;          // Σ n_r
  std::uint64_t ask_from_ = 0;      // with Ask::by_rule, insert asks from this many keys on
  std::uint64_t kept_ = 0;
  std::uint64_t forgotten_ = 0;
  std::uint64_t forget_misses_ = 0;
  bool asking_ = true;
};

// The fields of a snapshot's header.
struct DynamicHeader {
  Dynamic::Params params;
  std::uint64_t filters = 0;
  std::uint64_t kept = 0;
  bool asking = false;
  // Throws CorruptSnapshot.
  static DynamicHeader decode(Decoder& header);
};

// A snapshot of `dynamic` piece by piece, for a receiver with too little memory for the whole: each
// piece can be queried, or merged into something else, and dropped before the next one is read.
class DynamicPieces {
 public:
  // The decoders must outlive this. Throws CorruptSnapshot.
  DynamicPieces(Decoder& header, Decoder& payload, MemoryResource& memory = default_memory());

  const DynamicHeader& header() const noexcept { return header_; }
  std::uint64_t left() const noexcept { return header_.filters - read_; }
  // Reads the next piece; there must be one. Throws CorruptSnapshot.
  DynamicPiece next();

 private:
  DynamicHeader header_;
  Decoder& payload_;
  MemoryResource& memory_;
  std::uint64_t read_ = 0;
};

}  // namespace sluice
