// The items of a command.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "apps/redis/entry.hpp"

namespace sluice::server {

// Room for one value per item, none of them set yet. Few items need no memory.
template <class T>
class Room {
 public:
  explicit Room(std::size_t count) {
    if (count > kFew) many_ = std::make_unique_for_overwrite<T[]>(count);
    span_ = {count > kFew ? many_.get() : few_.values, count};
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::span<T> all() noexcept { return span_; }

 private:
  static constexpr std::size_t kFew = 128;
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  // Not initialized: clearing 128 values would cost more than judging one item.
  union Few {
    Few() noexcept {}
    T values[kFew];
  };

  Few few_;
  std::unique_ptr<T[]> many_;
  std::span<T> span_;
};

// Items as digests under an entry's secret, with room for what is said of each.
template <class Answer>
class Items {
 public:
  Items(const Entry& entry, std::span<const std::string_view> items)
      : digests_(items.size()), answers_(items.size()) {
    entry.hasher().digest(items, digests_.all());
  }
  std::span<const Digest> digests() noexcept { return digests_.all(); }
  std::span<Answer> answers() noexcept { return answers_.all(); }

 private:
  Room<Digest> digests_;
  Room<Answer> answers_;
};

}  // namespace sluice::server
