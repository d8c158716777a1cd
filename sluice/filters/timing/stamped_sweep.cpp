// The sweep of a stamped window: how numbers of few bits are reused without bringing expired cells
// back to life; and its snapshot.
//
// Strips of cells are swept one after another, in a circle. A sweep marks the cells of a strip that
// are expired. From then on the strip can be read for clean_ more generations: no two numbers in it
// look alike. Each key that is written sweeps a strip or a few until the generation has done its
// share, so that generations with many keys keep the whole table readable.
//
// If generations have few keys the sweep falls behind, and no call has to catch up. A strip is then
// swept before a key is written to it, so one that was not swept in time was not written to either:
// its cells carry numbers of that time, and are read as of then.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/timing/stamped_window.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kOfLine = kCacheLineBytes / sizeof(std::uint32_t);
// More would make one key's work as long as that of many.
constexpr std::uint64_t kMostStep = 8;

}  // namespace

// All is swept in a new table. Marks are kept of epochs and not of every generation, of which there
// may be millions: a sweep has an epoch less than there are numbers for it.
void StampedWindow::start_sweep() noexcept {
  const std::uint32_t numbers = shape_.padding + 1;
  epoch_ = (numbers + kMostMarks - 1) / kMostMarks;
  clean_ = numbers / epoch_ * epoch_;
  const std::uint64_t planned =
      std::max<std::uint64_t>(1, shape_.capacity / std::max(1u, shape_.generations));
  const Uint128 keys = Uint128{planned} * (clean_ - epoch_ + 1);  // of a round
  step_ =
      static_cast<std::uint64_t>(std::min<Uint128>(1 + 2 * Uint128{all_strips_} / keys, kMostStep));
  taken_ = 0;
  behind_ = false;
  swept_ = all_strips_;
  marks_.fill(0);
  due_ = swept_ + share_of(0);
}

// Strips to be swept in a generation: all of them in as many as there is time for.
std::uint64_t StampedWindow::share_of(std::uint64_t number) const noexcept {
  const std::uint64_t period = clean_ - epoch_ + 1;
  const std::uint64_t in_period = number % period;
  return static_cast<std::uint64_t>(Uint128{all_strips_} * (in_period + 1) / period -
                                    Uint128{all_strips_} * in_period / period);
}

// What was swept by the first epoch that began at most clean_ generations before this one.
std::uint64_t StampedWindow::mark_at(std::uint64_t number) const noexcept {
  const std::uint64_t first = number > clean_ ? number - clean_ : 0;
  return marks_[(first + epoch_ - 1) / epoch_ % marks()];
}

// Whether it is behind is decided once per generation, so that it does not depend on how calls are
// cut into batches.
void StampedWindow::take_number() noexcept {
  ++taken_;
  if (taken_ % epoch_ == 0) marks_[taken_ / epoch_ % marks()] = swept_;
  behind_ = swept_ - mark_at(taken_) < all_strips_;
  due_ = std::max(swept_ + share_of(taken_), mark_at(taken_ + 1) + all_strips_);
}

void StampedWindow::keep_pace(std::uint64_t written) noexcept {
  const std::uint64_t left = due_ - std::min(due_, swept_);
  const std::uint64_t until = swept_ + std::min(left, written * step_);
  for (; swept_ < until; ++swept_) sweep_strip(swept_ % all_strips_);
}

std::uint32_t StampedWindow::numbers_since_swept(std::uint64_t strip) const noexcept {
  std::uint32_t at;
  std::memcpy(&at, strips_.to_read(strip / kOfLine) + strip % kOfLine * sizeof at, sizeof at);
  return static_cast<std::uint32_t>(taken_) - at;
}

void StampedWindow::sweep_strip(std::uint64_t strip) noexcept {
  const std::uint32_t late = behind_ ? late_by(strip) : 0;
  const bool all_expired = late > shape_.generations;
  const std::uint32_t then = all_expired ? 1 : stamp_of_age(late);
  const std::uint64_t begin = strip * strip_cells_;
  const std::uint64_t end = std::min(begin + strip_cells_, shape_.cells());
  if (!all_expired && shape_.bits == 8 && memory_.data() != nullptr)
    sweep_bytes(begin, end, then, shape_.generations - late);
  else
    with_words(memory_, [&](auto words) {
      for (std::uint64_t cell = begin; cell < end; ++cell) {
        const std::uint32_t stamp = get(words, cell);
        if (stamp == 0) continue;
        if (all_expired || age_of_stamp(stamp, then) + late > shape_.generations)
          put(words, cell, 0);
      }
    });
  const auto at = static_cast<std::uint32_t>(taken_);
  std::memcpy(strips_.to_write(strip / kOfLine) + strip % kOfLine * sizeof at, &at, sizeof at);
}

// Cells of a byte in one block, without a branch, so that compilers take many together. Expired are
// the numbers that follow `then`, up to the first that is at most `oldest` generations before it; they
// come round at cycle_. Where that is not among them, they come round as bytes do, past those that no
// cell has and 0, which stays what it is.
void StampedWindow::sweep_bytes(std::uint64_t begin, std::uint64_t end, std::uint32_t then,
                                std::uint32_t oldest) noexcept {
  const std::uint32_t numbers = then > oldest ? 256 : cycle_;
  const auto first = static_cast<std::uint8_t>(then + 1);
  const auto expired = static_cast<std::uint8_t>(numbers - oldest - 1);
  auto* const cells = reinterpret_cast<std::uint8_t*>(memory_.data());
  for (std::uint64_t cell = begin; cell < end; ++cell)
    cells[cell] = static_cast<std::uint8_t>(cells[cell] - first) < expired ? 0 : cells[cell];
}

void StampedWindow::encode_state(Encoder& to) const {
  to.u32(now_);
  to.u8(behind_);
  to.u64(taken_);
  to.u64(swept_);
  to.u64(due_);
  for (std::uint64_t i = 0; i < marks(); ++i) to.u64(marks_[i]);
}

void StampedWindow::encode_tables(Encoder& to) const {
  counts_.encode(to);
  memory_.encode(to, shape_.table_bytes());
  strips_.encode(to);
}

void StampedWindow::expect_tables(const Shape& shape, const Decoder& payload) {
  payload.expect_remaining((std::uint64_t{shape.generations} + 1) * 8 + shape.table_bytes() +
                               strips(shape) * sizeof(std::uint32_t),
                           "the table of timers");
}

void StampedWindow::decode_state(Decoder& header, Decoder& payload) {
  const auto refuse = [&](bool wrong) {
    if (wrong) throw CorruptSnapshot(fmt::format("no filter '{}' has these fields", name_));
  };
  now_ = header.u32();
  const std::uint8_t behind = header.u8();
  taken_ = header.u64();
  swept_ = header.u64();
  due_ = header.u64();
  refuse(now_ == 0 || now_ > cycle_ || behind > 1 || taken_ > kMostRotations ||
         swept_ < all_strips_ || swept_ > due_ || due_ > kMostRotations + 2 * all_strips_ ||
         due_ - swept_ > 2 * all_strips_);
  behind_ = behind == 1;
  for (std::uint64_t i = 0; i < marks(); ++i) marks_[i] = header.u64();
  counts_.decode(payload, live_capacity_);
  memory_.decode(payload, shape_.table_bytes());
  strips_.decode(payload);
  // A stamp beyond the cycle would have a meaningless age.
  with_words(memory_, [&](auto words) {
    for (std::uint64_t cell = 0; cell < shape_.cells(); ++cell) refuse(get(words, cell) > cycle_);
  });
  refuse(!marks_are_sound());
}

// Marks tell whether the sweep is behind, so the strips must have been swept when they say: each when
// the sweep last passed, or later for a key of its own.
bool StampedWindow::marks_are_sound() const noexcept {
  const std::uint64_t last = taken_ / epoch_;
  const std::uint64_t count = std::min(last + 1, marks());
  const auto mark = [&](std::uint64_t back) { return marks_[(last - back) % marks()]; };
  for (std::uint64_t back = 0; back < count; ++back)
    if (mark(back) > (back == 0 ? swept_ : mark(back - 1))) return false;
  for (std::uint64_t unused = count; unused < marks(); ++unused)
    if (marks_[unused] != 0) return false;
  const std::uint64_t next = swept_ % all_strips_;
  for (std::uint64_t strip = 0; strip < all_strips_; ++strip) {
    const std::uint64_t passed = swept_ - ((strip < next ? next : next + all_strips_) - strip);
    const std::uint32_t since = numbers_since_swept(strip);
    if (since > taken_ || (!behind_ && since > clean_)) return false;
    std::uint64_t back = 0;
    while (back < count && mark(back) > passed) ++back;
    if (back < count && since > taken_ - (last - back) * epoch_) return false;
  }
  return true;
}

}  // namespace sluice
