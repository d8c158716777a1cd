// The last answers of a function of numbers: searches ask for the same ones again and again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::model {

// Each question has one slot, in which a later one takes its place. Answers are the same with and
// without it, so each thread has its own: `thread_local Memo<...>`.
template <std::size_t kNumbers, class Answer, std::size_t kSlots = 64>
class Memo {
 public:
  using Question = std::array<double, kNumbers>;

  template <class Compute>
  const Answer& operator()(const Question& question, const Compute& compute) {
    Slot& slot = slots_[slot_of(question)];
    if (!slot.full || slot.question != question) slot = {question, compute(), true};
    return slot.answer;
  }

 private:
  static_assert(std::has_single_bit(kSlots));
  struct Slot {
    Question question = {};
    Answer answer = {};
    bool full = false;
  };

  static std::size_t slot_of(const Question& question) noexcept {
    std::uint64_t mixed = 0;
    for (const double number : question)
      mixed = (mixed ^ std::bit_cast<std::uint64_t>(number)) * 0x9E37'79B9'7F4A'7C15;
    return static_cast<std::size_t>(mixed >> 32) % kSlots;
  }

  std::array<Slot, kSlots> slots_ = {};
};

}  // namespace sluice::model
