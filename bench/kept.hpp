// A filter that is kept at its planned load, with a stream for it: used by every measurement of a
// filter. Window filters are rotated by count, as a Window would; sets are emptied before they hold
// more than planned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "measure.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::bench {

// Key number n as a digest: so a stream needs no memory for its repeats.
inline Digest digest_of(std::uint64_t number) {
  SplitMix64 random(number * 2);
  return {random.next(), random.next()};
}

// Whether settings begin with the name of an existing filter.
bool in_catalogue(std::string_view settings);

class Kept {
 public:
  enum class Verb { observe, may_contain, insert };

  // Empty; a batch is kLap keys. `settings` as make_filter takes them. A filter that is not told
  // the number of keys starts small.
  Kept(const std::string& settings, std::uint64_t keys, double fpr, bool told = true,
       MemoryResource& memory = default_memory());

  // Inserts distinct keys until it holds that share of its planned keys. With more than 1, a
  // window's first keys leave again, so that it is ageing from then on.
  void fill(double share);
  // Brings a filter that forgets to its steady state, and a set to `share` of its keys.
  void settle(double share = 0.85);
  // Fills a set to its planned load; other filters are there already.
  void refill();

  void resize(std::size_t batch);
  // A batch of keys, of which a share repeats one of the last nine tenths of the window.
  void draw(double duplicates);
  // Applies the operation to the batch: at once, or with one call per key.
  void apply(Verb verb, bool batched = true);
  // Draws and applies batches, and returns the median batch's nanoseconds per key; only the
  // operation is timed.
  double ns(std::uint64_t keys, double duplicates = 0, Verb verb = Verb::observe,
            bool batched = true);

  // Share of keys never seen that are judged duplicate.
  double measured_fpr(std::uint64_t keys);
  // Cache lines that a new key touches.
  double lines_per_key() const { return lines_; }
  double bits_per_key() const;
  std::uint64_t bytes() const { return filter_.stats().bytes; }
  std::uint64_t written() const { return next_; }
  // Generations of a window that have ended.
  std::uint64_t ended() const { return ended_; }

  AnyFilter& filter() { return filter_; }
  const AnyFilter& filter() const { return filter_; }
  std::span<const Digest> digests() const { return digests_; }

 private:
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void insert(std::span<const Digest> digests);
  void end_generation();
  void make_room(Verb verb);

  AnyFilter filter_;
  bool set_;  // a set: it neither ages nor forgets by itself
  std::uint64_t keys_;
  double lines_;
  std::uint64_t generation_ = 0;  // keys in one, of a window
  std::uint64_t left_ = 0;        // of it, or of the room of a set
  std::uint64_t ended_ = 0;
  std::uint64_t next_ = 1;  // the number of the next new key
  SplitMix64 random_{1};
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
};

}  // namespace sluice::bench
