// Runs filters side by side over one stream and compares them with the exact truth.
//
// The truth is that of the stream itself when every distinct record is delivered: without a window,
// whether the key came before; with one, whether it was delivered within it. A filter that errs
// delivers other records, but is still measured by this truth.
//
// A window filter may hold a key up to its slack too long, by its contract, and its window runs
// from its own deliveries. If it differs from the truth but is right by its own deliveries and its
// slack, the record is counted as `by_slack` and not as an error.
//
// With a window of time, records that come a window or more after their time are late, and a time
// too far ahead is not believed (window/clock.hpp): both are left out and counted.
//
// Digests are collected in chunks of kChunk, and each filter judges a whole chunk in batches of
// kBatch before the next filter does: its time is that of `observe` alone, with its table in cache
// as far as a chunk brings it there. The truth takes 48 to 96 bytes per key, and so do the
// deliveries of each window filter. When there are too many points, their distance is doubled. No
// other memory grows with the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/filters/any_filter.hpp"
#include "sluice/lab/stream_truth.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

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
  bool forgets = false;               // may let a duplicate through
  double seconds = 0;                 // spent in observe
  std::vector<CompareCounts> points;  // the counts of stretches of the stream, all of one length
                                      // but for the last
};

// The truth.
struct CompareTruth {
  CompareCounts counts = {};      // without any error
  std::uint64_t late = 0;         // left out: a window or more behind
  std::uint64_t disbelieved = 0;  // left out: clocks too far ahead
  std::uint64_t most_keys = 0;    // that must be remembered at any one time
  std::uint64_t bytes = 0;        // that it took, for all filters together
};

class Comparison {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 16;
  static constexpr std::size_t kBatch = 1024;
  static constexpr std::size_t kMostPoints = 200;

  explicit Comparison(std::optional<WindowSpec> window);
  void add(std::string name, AnyFilter filter);  // before the first digest

  // `times`: of each record, for a time window; otherwise ignored.
  void feed(std::span<const Digest> digests, std::span<const Nanoseconds> times = {});
  // Judges what is collected. Then the results are complete, in the order of add().
  std::vector<CompareResult> finish();
  CompareTruth truth() const;

 private:
  struct Entry {
    std::string name;
    AnyFilter filter;
    std::optional<StreamTruth> own;  // window filters: what they delivered themselves
    double slack = 0;                // the most there was
    CompareCounts counts = {};
    double seconds = 0;
    std::vector<CompareCounts> points = {};
  };
  bool by_time() const noexcept { return window_ && window_->by_time(); }
  void feed_timed(std::span<const Digest> digests, std::span<const Nanoseconds> times);
  void judge();
  void find_truth();
  bool starts_afresh(std::size_t i) const;
  void note_delivery(std::int64_t time, std::int64_t now);
  void judge(Entry& entry);
  void ask(Entry& entry, std::size_t at, std::size_t count);
  CompareCounts count(Entry& entry, std::size_t begin, std::size_t end);
  bool by_slack(Entry& entry, std::size_t i, bool held);
  void thin_out();

  std::optional<WindowSpec> window_;
  StreamTruth truth_;
  ClockLimits limits_;
  EventClock clock_;
  CompareTruth found_;
  std::deque<std::int64_t> in_window_;  // deliveries that are to be remembered, by time
  std::vector<Entry> entries_;
  // A chunk. Times and nows only in windows of time.
  std::vector<Digest> digests_;
  std::vector<Nanoseconds> times_;
  std::vector<Nanoseconds> nows_;
  Nanoseconds before_ = std::numeric_limits<Nanoseconds>::min();  // now when the chunk began
  std::vector<char> distinct_;                                    // by the truth
  std::vector<Verdict> verdicts_;
  std::unique_ptr<bool[]> late_;
  std::uint64_t stride_ = kBatch;  // records per point
  std::uint64_t judged_ = 0;
};

}  // namespace sluice
