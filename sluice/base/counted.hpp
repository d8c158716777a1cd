// A pointer to something constant that many share: std::shared_ptr in half its size, because the count lies
// beside the object. A window of ten keys has one, and there may be millions of these.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace sluice {

// May be copied and destroyed by several threads at once. Never null, unless moved from.
template <class T>
class Counted {
 public:
  template <class... Arguments>
  static Counted make(Arguments&&... arguments) {
    return Counted(new Box{.value = T{std::forward<Arguments>(arguments)...}});
  }
  Counted(const Counted& other) noexcept : box_(other.box_) {
    box_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Counted(Counted&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  Counted& operator=(Counted other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~Counted() {
    if (box_ != nullptr && box_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete box_;
  }

  const T& operator*() const noexcept { return box_->value; }
  const T* operator->() const noexcept { return &box_->value; }

 private:
  struct Box {
    std::atomic<std::uint64_t> holders = 1;
    T value;
  };
  explicit Counted(Box* box) noexcept : box_(box) {}
  Box* box_;
};

}  // namespace sluice
