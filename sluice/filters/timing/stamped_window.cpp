#include "sluice/filters/timing/stamped_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/batches.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice {
namespace {

// Cells are read and written as part of a word that begins at their first byte.
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

// Each key brings a line per probe: as many keys ahead as fill the processor's queue of misses.
std::size_t keys_ahead(unsigned probes) {
  return std::clamp<std::size_t>(32 / probes, 3, 16);
}

}  // namespace

std::uint64_t StampedWindow::Shape::live_capacity(std::uint64_t keys, unsigned generations) {
  if (generations == 0) return keys;
  return (keys + generations - 1) / generations * (generations + 1);
}

const char* StampedWindow::what_is_wrong(const Shape& shape) {
  if (shape.probes == 0 || shape.probes > kMostProbes) return "it takes 1 to 64 probes";
  if (shape.bits < 2 || shape.bits > kMostBits) return "its timers have 2 to 32 bits";
  if (shape.generations > kMostGenerations) return "it takes at most 2^24 generations";
  if (std::uint64_t{shape.generations} + 3 + shape.padding > std::uint64_t{1} << shape.bits)
    return "its timers have too few bits for so many generations and so much padding";
  if (shape.slices == 0 || (shape.vertical && shape.slices != 1)) return "it takes 1 slice or more";
  if (shape.capacity == 0 || shape.capacity > kMostKeys)
    return "it takes 1 to 2^40 keys per window";
  if (shape.equal > shape.probes) return "no more timers can be equal than there are probes";
  const std::uint64_t parts = shape.vertical ? shape.probes : shape.slices;
  if (shape.range == 0 || shape.range > kMostTableBytes / parts / shape.bits * 8)
    return "its table takes 1 timer to 64 TiB";
  return nullptr;
}

// Nothing is live in a new table of zeros, for any present number.
StampedWindow::StampedWindow(std::string_view name, const Shape& shape, MemoryResource& memory)
    : name_(name),
      shape_(shape),
      cycle_(shape.generations + 2 + shape.padding),
      stride_(shape.vertical ? shape.range : 0),
      live_capacity_(shape.live_capacity()),
      strip_cells_(strip_cells(shape)),
      all_strips_(strips(shape)),
      counts_(shape.generations, memory),
      memory_(shape.table_bytes() + kWordBytes, memory),
      strips_(all_strips_ * sizeof(std::uint32_t), memory) {
  start_sweep();
}

std::uint64_t StampedWindow::bytes_of(const Shape& shape) {
  return shape.table_bytes() + kWordBytes + strips(shape) * sizeof(std::uint32_t) +
         GenerationCounts::bytes_for(shape.generations);
}

template <class Words>
void StampedWindow::look(Words words, const Digest& digest, Sight& sight) const noexcept {
  const std::uint64_t base = base_of(digest);
  sight.oldest = 0;
  for (unsigned probe = 0; probe < shape_.probes; ++probe) {
    sight.cells[probe] = cell_of(digest, base, probe);
    sight.ages[probe] = age_of_stamp(get(words, sight.cells[probe]));
    sight.oldest = std::max(sight.oldest, sight.ages[probe]);
  }
  if (behind_) [[unlikely]]
    look_behind(words, sight);
}

// The same cells, each by the numbers of its strip.
template <class Words>
void StampedWindow::look_behind(Words words, Sight& sight) const noexcept {
  sight.oldest = 0;
  for (unsigned probe = 0; probe < shape_.probes; ++probe) {
    const std::uint64_t cell = sight.cells[probe];
    sight.ages[probe] = age_in_strip(get(words, cell), late_by(strip_of(cell)));
    sight.oldest = std::max(sight.oldest, sight.ages[probe]);
  }
}

StampedWindow::Sight StampedWindow::sight_of(const Digest& digest) const noexcept {
  Sight sight;
  with_words(memory_, [&](auto words) { look(words, digest, sight); });
  return sight;
}

bool StampedWindow::held(const Sight& sight) const noexcept {
  if (sight.oldest > shape_.generations) return false;
  if (shape_.equal <= 1) return true;
  const auto end = sight.ages.begin() + shape_.probes;
  for (auto age = sight.ages.begin(); age != end; ++age)
    if (std::count(age, end, *age) >= static_cast<std::ptrdiff_t>(shape_.equal)) return true;
  return false;
}

// A cell keeps the later of two times. A strip that is not read by the present numbers is swept
// before one of them is written to it.
template <class Words>
void StampedWindow::write(Words words, const Sight& sight, unsigned age) noexcept {
  if (behind_) [[unlikely]]
    for (unsigned probe = 0; probe < shape_.probes; ++probe) {
      const std::uint64_t strip = strip_of(sight.cells[probe]);
      if (sight.ages[probe] > age && late_by(strip) > 0) sweep_strip(strip);
    }
  const std::uint32_t stamp = stamp_of_age(age);
  for (unsigned probe = 0; probe < shape_.probes; ++probe)
    if (sight.ages[probe] > age) put(words, sight.cells[probe], stamp);
}

void StampedWindow::write(const Sight& sight, unsigned age) noexcept {
  with_words(memory_, [&](auto words) { write(words, sight, age); });
}

// Does not touch the table, so that idle generations cost nothing.
void StampedWindow::rotate() noexcept {
  if (taken_ == kMostRotations || due_ > kMostRotations) return clear();
  counts_.rotate();
  now_ = now_ == cycle_ ? 1 : now_ + 1;
  take_number();
}

template <class Words>
std::size_t StampedWindow::admit(Words words, std::span<const Digest> digests,
                                 std::span<Verdict> verdicts, std::uint64_t& budget,
                                 bool refresh) noexcept {
  const bool prefetch = memory_.size() >= kernels::kPrefetchFromBytes;
  const std::size_t ahead = keys_ahead(shape_.probes);
  std::uint64_t written = 0;
  std::size_t judged = 0;
  Sight sight;
  for (; judged < digests.size() && budget > 0; ++judged) {
    if (prefetch && judged + ahead < digests.size()) {
      // In place: GCC would drop a function that only prefetches.
      const Digest& later = digests[judged + ahead];
      const std::uint64_t base = base_of(later);
      for (unsigned probe = 0; probe < shape_.probes; ++probe)
        __builtin_prefetch(words.address(cell_of(later, base, probe) * shape_.bits / 64), 1);
    }
    look(words, digests[judged], sight);
    const bool duplicate = held(sight);
    verdicts[judged] = static_cast<Verdict>(duplicate);
    if (duplicate && !refresh) continue;
    if (duplicate) {
      counts_.move(sight.oldest, 0);
    } else {
      if (counts_.live() >= live_capacity_) break;
      counts_.add(0);
    }
    write(words, sight, 0);
    ++written;
    --budget;
  }
  keep_pace(written);
  return judged;
}

std::size_t StampedWindow::admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                 std::uint64_t& budget, Anchor anchor) noexcept {
  assert(digests.size() == verdicts.size());
  return with_words(memory_, [&](auto words) {
    return admit(words, digests, verdicts, budget, anchor == Anchor::refreshed);
  });
}

std::optional<Verdict> StampedWindow::admit_aged(const Digest& digest, unsigned age,
                                                 Anchor anchor) noexcept {
  assert(age <= shape_.generations);
  const Sight sight = sight_of(digest);
  if (held(sight)) {
    if (anchor == Anchor::refreshed && age < sight.oldest) {
      counts_.move(sight.oldest, age);
      write(sight, age);
    }
    return Verdict::duplicate;
  }
  if (counts_.live() >= live_capacity_) return std::nullopt;
  counts_.add(age);
  write(sight, age);
  keep_pace(1);
  return Verdict::distinct;
}

std::optional<StampedWindow::Trace> StampedWindow::age_of(const Digest& digest) const noexcept {
  const Sight sight = sight_of(digest);
  if (!held(sight)) return std::nullopt;
  Trace trace{sight.oldest, 0, 0};
  for (unsigned probe = 0; probe < shape_.probes; ++probe) {
    const auto before = sight.cells.begin() + probe;
    if (std::find(sight.cells.begin(), before, *before) != before) continue;
    ++trace.cells;
    trace.oldest += sight.ages[probe] == sight.oldest;
  }
  return trace;
}

Verdict StampedWindow::observe(const Digest& digest) {
  Verdict verdict;
  if (observe(std::span(&digest, 1), std::span(&verdict, 1)) == 1) return verdict;
  // Without a Window nothing makes room, so a full filter is an error.
  throw BadParameters(
      fmt::format("filter '{}' is full with {} keys: plan it for more", name_, live_keys()));
}

std::size_t StampedWindow::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  std::uint64_t budget = digests.size();
  return admit(digests, verdicts, budget, Anchor::delivered);
}

template <class Words>
bool StampedWindow::holds(Words words, const Digest& digest) const noexcept {
  if (shape_.equal > 1 || behind_) {
    Sight sight;
    look(words, digest, sight);
    return held(sight);
  }
  const std::uint64_t base = base_of(digest);
  for (unsigned probe = 0; probe < shape_.probes; ++probe)
    if (age_of_stamp(get(words, cell_of(digest, base, probe))) > shape_.generations) return false;
  return true;
}

bool StampedWindow::may_contain(const Digest& digest) const noexcept {
  return with_words(memory_, [&](auto words) { return holds(words, digest); });
}

void StampedWindow::may_contain(std::span<const Digest> digests,
                                std::span<Verdict> verdicts) const noexcept {
  ask_each(memory_, digests, verdicts,
           [this](auto words, const Digest& digest) { return holds(words, digest); });
}

void StampedWindow::may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                                unsigned later) const noexcept {
  assert(digests.size() == verdicts.size());
  std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
    const Sight sight = sight_of(digest);
    return static_cast<Verdict>(held(sight) &&
                                std::uint64_t{sight.oldest} + later <= shape_.generations);
  });
}

std::size_t StampedWindow::insert(std::span<const Digest> digests) {
  return insert_by_observing<256>(*this, digests);
}

void StampedWindow::clear() noexcept {
  memory_.clear();
  strips_.clear();
  counts_.clear();
  now_ = 1;
  start_sweep();
}

}  // namespace sluice
