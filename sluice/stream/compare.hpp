// Filters side by side over one stream, with the exact truth beside them.
//
// The truth is that of the stream itself when every distinct record is delivered: without a window,
// whether the key came before; with one of n, whether it is among the last n deliveries. A filter
// that errs delivers other records than that, and is measured by the truth all the same.
//
// A window filter may hold a key up to its slack too long, by its contract, and its window runs
// from its own deliveries. Where it differs from the truth and its own deliveries, so read, make it
// right, the record is counted as `by_slack` and not as an error.
//
// Digests are collected to chunks of kChunk, and each filter judges a whole chunk in batches of
// kBatch before the next filter does: its time is that of `observe` alone, with its table as warm
// as a chunk makes it. The truth takes 48 to 96 bytes a key, and so do the
// deliveries of each window filter; the points double their distance
// whenever there are too many: no other memory grows with the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/filters/any_filter.hpp"

namespace sluice {

// How many deliveries ago each key was last delivered, for as many keys as come.
class StreamTruth {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // Nothing: everything is remembered.
  explicit StreamTruth(std::optional<std::uint64_t> window);

  // The age of the key's last delivery: 1 if no other followed, kNever if there was none. A key
  // whose age is above the window is delivered.
  std::uint64_t observe(const Digest& digest);
  // The same in two steps, for deliveries that another decides about.
  std::uint64_t age_of(const Digest& digest) noexcept;
  void deliver(const Digest& digest);
  bool distinct(std::uint64_t age) const noexcept { return age > window_; }

 private:
  struct Slot {
    Digest digest;
    std::uint64_t delivery = 0;  // counted from 1; 0: empty
  };
  Slot& find(const Digest& digest) noexcept;
  void grow();

  std::uint64_t window_;
  std::uint64_t deliveries_ = 0;
  std::uint64_t keys_ = 0;
  std::vector<Slot> slots_;
};

struct CompareCounts {
  std::uint64_t records = 0;
  std::uint64_t distinct = 0;         // by the truth
  std::uint64_t false_positives = 0;  // distinct, and held back
  std::uint64_t false_negatives = 0;  // duplicate, and let through
  std::uint64_t by_slack = 0;         // neither, though it differs from the truth
  std::uint64_t duplicates() const noexcept { return records - distinct; }
  // Shares of the distinct records, and of the duplicates; 0 where there is none.
  double false_positive_rate() const noexcept;
  double false_negative_rate() const noexcept;
  CompareCounts& operator+=(const CompareCounts& other) noexcept;
  friend bool operator==(const CompareCounts&, const CompareCounts&) = default;
};

struct CompareResult {
  std::string name;
  std::string settings;  // what the filter was made of
  FilterStats stats;
  CompareCounts counts;
  double seconds = 0;                 // spent in observe
  std::vector<CompareCounts> points;  // the counts of stretches of the stream, all of one length
                                      // but for the last
};

// What all filters of a comparison have in common.
struct CompareWish {
  Wish wish = {};
  std::optional<std::uint64_t> window = {};  // deliveries
  std::optional<std::uint64_t> memory = {};  // bytes
};

// The filter that `name_and_settings` says, within a window if it is a window filter and there is
// one. With `memory`, one of a fixed size has that many bytes, unless its settings say another. A
// window is planned for the least error that it can have in them, unless its settings say bytes or
// fpr. Throws BadParameters.
AnyFilter make_compared(std::string_view name_and_settings, const CompareWish& wish);

class Comparison {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 16;
  static constexpr std::size_t kBatch = 1024;
  static constexpr std::size_t kMostPoints = 200;

  explicit Comparison(std::optional<std::uint64_t> window);
  void add(std::string name, AnyFilter filter);  // before the first digest

  void feed(std::span<const Digest> digests);
  // What is collected is judged. Then the results are whole, in the order of add().
  std::vector<CompareResult> finish();
  // Of the stream: without any error.
  const CompareCounts& stream() const noexcept { return stream_; }

 private:
  struct Entry {
    std::string name;
    AnyFilter filter;
    std::optional<StreamTruth> own;  // window filters: what they delivered themselves
    std::uint64_t most_age;          // with the slack
    CompareCounts counts;
    double seconds = 0;
    std::vector<CompareCounts> points;
  };
  void judge();
  void judge(Entry& entry);
  CompareCounts count(Entry& entry, std::size_t begin, std::size_t end) const;
  bool by_slack(Entry& entry, const Digest& digest, bool held) const;
  void thin_out();

  std::optional<std::uint64_t> window_;
  StreamTruth truth_;
  CompareCounts stream_;
  std::vector<Entry> entries_;
  std::vector<Digest> digests_;
  std::vector<std::uint64_t> ages_;  // of the chunk, by the truth
  std::vector<Verdict> verdicts_;
  std::uint64_t stride_ = kBatch;  // records a point
  std::uint64_t judged_ = 0;
};

}  // namespace sluice
