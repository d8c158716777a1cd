// A window of cells that hold the generation of their last write: the common part of `timing` and
// `timer`. It is not a filter by itself; these two choose the number of cells, their bits and their
// places.
//
// A key has `probes` cells; writing it stamps them with the number of the present generation. It
// is held while all its cells are live, that is, stamped in the present generation or one of the
// `generations` before it. Nothing is decremented as time goes by: ages are differences of numbers.
//
// Numbers are 1 to `cycle`, and 0 marks a cell that is expired or was never written. They wrap
// around, so expired cells must be marked before their number is used again. There are `padding` +
// 1 generations for that, in which keys sweep all cells, one strip at a time. If generations have
// too few keys for that, strips are read by the numbers of the time when they were last swept
// (stamped_sweep.cpp). So a call's work depends on its keys, not on the table.
//
//   cycle = generations + 2 + padding < 2^bits
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "sluice/base/bits.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/filters/cohort/generation_counts.hpp"
#include "sluice/filters/window_contract.hpp"

namespace sluice {

class StampedWindow {
 public:
  static constexpr unsigned kMostProbes = 64;
  static constexpr unsigned kMostBits = 32;
  static constexpr unsigned kMostGenerations = 1u << 24;
  static constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 46;
  // A size from a model may not fit an integer: then it is more than any table has.
  static std::uint64_t whole_timers(double wanted) noexcept {
    constexpr double kTooMany = 0x1p50;
    return static_cast<std::uint64_t>(
        std::isfinite(wanted) ? std::clamp(std::ceil(wanted), 1.0, kTooMany) : kTooMany);
  }

  struct Shape {
    std::uint64_t range = 0;  // cells that one probe chooses from
    unsigned slices = 1;      // a key's probes stay within one slice; 1: the whole table
    bool vertical = false;    // each probe has its own range, instead of one for all
    unsigned probes = 0;
    unsigned bits = 0;  // of a cell
    unsigned generations = 0;
    unsigned padding = 0;
    std::uint64_t capacity = 0;  // keys a window holds
    unsigned equal = 0;          // least number of equal stamps of a duplicate; 0: no such test

    std::uint64_t cells() const { return range * (vertical ? probes : slices); }
    std::uint64_t table_bytes() const { return (cells() * bits + 7) / 8; }
    // Keys that may be live at once: the window and the generation that is being written.
    std::uint64_t live_capacity() const { return live_capacity(capacity, generations); }
    static std::uint64_t live_capacity(std::uint64_t keys, unsigned generations);
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  // What the cells tell about the last write of a key that is held: no later than `age` generations
  // ago.
  struct Trace {
    unsigned age;     // of the oldest stamp
    unsigned oldest;  // cells that share it
    unsigned cells;   // different cells of the key: probes may fall together
  };

  // The operations of every filter: all in the present generation, nothing ages.
  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  unsigned generations() const noexcept { return shape_.generations; }
  void rotate() noexcept;
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept;
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept;
  std::uint64_t live_keys() const noexcept { return counts_.live(); }
  std::uint64_t room() const noexcept {
    return live_capacity_ - std::min(live_capacity_, counts_.live());
  }

  std::optional<Trace> age_of(const Digest& digest) const noexcept;
  // Keys last written `age` generations ago, at most generations().
  std::uint64_t keys_aged(unsigned age) const noexcept { return counts_.at(age); }
  const Shape& shape() const noexcept { return shape_; }
  std::uint64_t bytes() const noexcept {
    return memory_.taken() + strips_.taken() + counts_.taken();
  }
  MemoryResource& memory() const noexcept { return memory_.resource(); }
  // The bytes() of such a window, before it is made.
  static std::uint64_t bytes_of(const Shape& shape);

 protected:
  // `name` is the filter's, for errors; it outlives this.
  StampedWindow(std::string_view name, const Shape& shape, MemoryResource& memory);

  // A sentence if the shape is impossible; otherwise nothing.
  static const char* what_is_wrong(const Shape& shape);

  void encode_state(Encoder& to) const;
  void encode_tables(Encoder& to) const;
  static void expect_tables(const Shape& shape, const Decoder& payload);
  void decode_state(Decoder& header, Decoder& payload);
  bool marks_are_sound() const noexcept;

 private:
  static constexpr unsigned kExpired = 0xFFFF'FFFF;  // the age of a cell marked as expired

  // Cells of a key and the ages of their stamps.
  struct Sight {
    std::array<std::uint64_t, kMostProbes> cells;
    std::array<unsigned, kMostProbes> ages;
    unsigned oldest;
  };

  // Where a key's cells are: part of the format. Each probe mixes the digest with its own two
  // factors, because sums of two hashes would have a floor of false positives.
  std::uint64_t base_of(const Digest& digest) const noexcept {
    if (shape_.slices == 1) return 0;
    return shape_.range *
           scale_to(fold_multiply(digest.hi + 0x8CB92BA72F3D8DD7ULL, digest.lo ^ kMixer),
                    shape_.slices);
  }
  std::uint64_t cell_of(const Digest& digest, std::uint64_t base, unsigned probe) const noexcept {
    const std::uint64_t mixed =
        fold_multiply(digest.lo + probe * kMixer, digest.hi + (probe + 1) * kOtherMixer);
    return base + probe * stride_ + scale_to(mixed, shape_.range);
  }
  static constexpr std::uint64_t kMixer = 0xC2B2AE3D27D4EB4FULL;
  static constexpr std::uint64_t kOtherMixer = 0x9E3779B185EBCA87ULL;

  // `words` are the table's, as with_words() gives them.
  template <class Words>
  std::uint32_t get(Words words, std::uint64_t cell) const noexcept {
    const std::uint64_t bit = cell * shape_.bits;
    return static_cast<std::uint32_t>(words.load(bit / 8) >> (bit % 8) &
                                      ((std::uint64_t{1} << shape_.bits) - 1));
  }
  template <class Words>
  void put(Words words, std::uint64_t cell, std::uint32_t stamp) noexcept {
    const std::uint64_t bit = cell * shape_.bits;
    const std::uint64_t mask = ((std::uint64_t{1} << shape_.bits) - 1) << (bit % 8);
    words.store(bit / 8, (words.load(bit / 8) & ~mask) | std::uint64_t{stamp} << (bit % 8));
  }
  unsigned age_of_stamp(std::uint32_t stamp) const noexcept { return age_of_stamp(stamp, now_); }
  // As of the generation of number `then`.
  unsigned age_of_stamp(std::uint32_t stamp, std::uint32_t then) const noexcept {
    if (stamp == 0) return kExpired;
    return then >= stamp ? then - stamp : then + cycle_ - stamp;
  }
  std::uint32_t stamp_of_age(unsigned age) const noexcept {
    return now_ > age ? now_ - age : now_ + cycle_ - age;
  }

  template <class Words>
  void look(Words words, const Digest& digest, Sight& sight) const noexcept;
  template <class Words>
  [[gnu::noinline]] void look_behind(Words words, Sight& sight) const noexcept;
  Sight sight_of(const Digest& digest) const noexcept;
  bool held(const Sight& sight) const noexcept;
  template <class Words>
  bool holds(Words words, const Digest& digest) const noexcept;
  template <class Words>
  void write(Words words, const Sight& sight, unsigned age) noexcept;
  void write(const Sight& sight, unsigned age) noexcept;
  template <class Words>
  std::size_t admit(Words words, std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, bool refresh) noexcept;

  // The sweep (stamped_sweep.cpp).
  static constexpr std::uint64_t kStripBits = 4096;  // eight cache lines
  static constexpr std::uint32_t kMostMarks = 64;
  static std::uint64_t strip_cells(const Shape& shape) { return kStripBits / shape.bits; }
  static std::uint64_t strips(const Shape& shape) {
    return (shape.cells() + strip_cells(shape) - 1) / strip_cells(shape);
  }
  void start_sweep() noexcept;
  void keep_pace(std::uint64_t written) noexcept;
  void take_number() noexcept;
  std::uint64_t share_of(std::uint64_t number) const noexcept;
  std::uint64_t marks() const noexcept { return clean_ / epoch_ + 1; }
  std::uint64_t mark_at(std::uint64_t number) const noexcept;
  std::uint64_t strip_of(std::uint64_t cell) const noexcept { return cell / strip_cells_; }
  std::uint32_t numbers_since_swept(std::uint64_t strip) const noexcept;
  // Generations since a strip could be read by the present numbers.
  std::uint32_t late_by(std::uint64_t strip) const noexcept {
    const std::uint32_t since = numbers_since_swept(strip);
    return since > clean_ ? since - clean_ : 0;
  }
  unsigned age_in_strip(std::uint32_t stamp, std::uint32_t late) const noexcept {
    if (stamp == 0 || late > shape_.generations) return kExpired;
    return age_of_stamp(stamp, stamp_of_age(late)) + late;
  }
  void sweep_strip(std::uint64_t strip) noexcept;
  void sweep_bytes(std::uint64_t begin, std::uint64_t end, std::uint32_t then,
                   std::uint32_t oldest) noexcept;

  std::string_view name_;
  Shape shape_;
  std::uint32_t cycle_;
  std::uint64_t stride_;
  std::uint64_t live_capacity_;
  std::uint64_t strip_cells_, all_strips_;
  std::uint32_t epoch_;      // generations from one mark to the next
  std::uint32_t clean_;      // how many generations a strip can be read after it was swept
  std::uint64_t step_;       // strips that a key sweeps at most
  std::uint32_t now_ = 1;    // the number of the present generation
  bool behind_ = false;      // whether a strip may have been swept more than clean_ generations ago
  std::uint64_t taken_ = 0;  // generations so far
  std::uint64_t swept_ = 0;  // strips swept so far, one after the other, round and round
  std::uint64_t due_ = 0;    // value that swept_ must reach by the end of this generation
  std::array<std::uint64_t, kMostMarks + 1> marks_{};  // swept_ when each of the last epochs began
  GenerationCounts counts_;
  LineTable memory_;
  LineTable strips_;  // of each strip: the low 32 bits of taken_ when it was last swept
};

}  // namespace sluice
