#include "sluice/filters/short_list.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

// Stamps are times or numbers within 62 bits of zero, so that no difference overflows.
constexpr ShortList::Stamp kOldest = -(ShortList::Stamp{1} << 62);

bool before(const Digest& a, const Digest& b) noexcept {
  return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
}

}  // namespace

ShortList::ShortList(ShortList&& other) noexcept : memory_(other.memory_) {
  *this = std::move(other);
}

ShortList& ShortList::operator=(ShortList&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  // Bit fields have no address to swap by.
  const std::uint32_t room = room_;
  const bool aside = aside_;
  room_ = other.room_;
  aside_ = other.aside_;
  other.room_ = room & kMostKeys;
  other.aside_ = aside;
  return *this;
}

ShortList::~ShortList() {
  clear();
}

void ShortList::free_block() noexcept {
  if (data_ == nullptr) return;
  if (aside_)
    ::operator delete(data_);
  else
    memory_->deallocate(data_, room_ * kKeyBytes, alignof(Digest));
}

void ShortList::clear() noexcept {
  free_block();
  data_ = nullptr;
  size_ = room_ = 0;
  aside_ = false;
}

// Two keys more while they are few, since most lists stay so; a quarter more later, so that copying
// stays cheap.
std::size_t ShortList::room_for(std::size_t keys) noexcept {
  std::size_t room = 0;
  while (room < keys) room += std::max<std::size_t>(2, room / 4 & ~std::size_t{1});
  return room;
}

std::uint64_t ShortList::bytes_for(std::size_t keys) noexcept {
  return room_for(keys) * kKeyBytes;
}

std::uint64_t ShortList::bytes() const noexcept {
  if (data_ == nullptr || aside_) return 0;
  return memory_->usable(data_, room_ * kKeyBytes, alignof(Digest));
}

void ShortList::move_to(void* block, std::size_t room, bool aside) noexcept {
  auto* const data = static_cast<Digest*>(block);
  if (size_ > 0) {
    std::memcpy(data, data_, size_ * sizeof(Digest));
    std::memcpy(stamps_of(data, room), stamps_of(data_, room_), size_ * sizeof(Stamp));
  }
  free_block();
  data_ = data;
  room_ = static_cast<std::uint32_t>(room) & kMostKeys;
  aside_ = aside;
}

void ShortList::reserve(std::size_t room) {
  move_to(memory_->allocate(room * kKeyBytes, alignof(Digest)), room, false);
}

void ShortList::grow(std::size_t most, std::uint64_t limit) {
  if (full()) grow_to(std::size_t{room_} + 1, most, limit);
}

void ShortList::grow_to(std::size_t keys, std::size_t most, std::uint64_t limit) {
  if (keys <= room_) return;
  const std::size_t room = std::min(room_for(keys), std::max(keys, most));
  const std::uint64_t bytes_more = memory_->costs().block(room * kKeyBytes);
  if (bytes_more <= memory_->left() && bytes() + bytes_more <= limit) return reserve(room);
  step_aside();
  try {
    reserve(room);
  } catch (...) {
    step_back();
    throw;
  }
}

void ShortList::step_aside() {
  if (data_ == nullptr || aside_) return;
  move_to(::operator new(room_* kKeyBytes), room_, true);
}

void ShortList::step_back() noexcept {
  if (aside_) while_memory_lasts([&] { reserve(room_); });
}

std::optional<std::size_t> ShortList::find(const Digest& digest) const noexcept {
  const Digest* const end = data_ + size_;
  const Digest* const at = std::lower_bound(data_, const_cast<Digest*>(end), digest, before);
  if (at == end || *at != digest) return std::nullopt;
  return static_cast<std::size_t>(at - data_);
}

void ShortList::insert(const Digest& digest, Stamp stamp) noexcept {
  assert(!full());
  Digest* const at = std::lower_bound(data_, data_ + size_, digest, before);
  const auto index = static_cast<std::size_t>(at - data_);
  Stamp* const stamps = stamps_of(data_, room_);
  std::memmove(at + 1, at, (size_ - index) * sizeof(Digest));
  std::memmove(stamps + index + 1, stamps + index, (size_ - index) * sizeof(Stamp));
  *at = digest;
  stamps[index] = stamp;
  ++size_;
}

void ShortList::erase(std::size_t at) noexcept {
  assert(at < size_);
  Stamp* const stamps = stamps_of(data_, room_);
  const std::size_t behind = size_ - at - 1;
  std::memmove(data_ + at, data_ + at + 1, behind * sizeof(Digest));
  std::memmove(stamps + at, stamps + at + 1, behind * sizeof(Stamp));
  --size_;
}

void ShortList::shift(Stamp by) noexcept {
  for (Stamp& stamp : std::span(stamps_of(data_, room_), size_))
    if (__builtin_add_overflow(stamp, by, &stamp) || stamp < kOldest) stamp = kOldest;
}

void ShortList::erase_before(Stamp oldest) noexcept {
  Stamp* const stamps = stamps_of(data_, room_);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (stamps[i] < oldest) continue;
    data_[kept] = data_[i];
    stamps[kept++] = stamps[i];
  }
  size_ = kept;
}

// To twice its keys, so that neither a few more nor a few less change it again.
void ShortList::shrink() noexcept {
  step_back();
  if (room_ <= kLeastShrunk || room_ <= kTooLarge * size_) return;
  if (size_ == 0) return clear();
  // Aside first, so that both blocks are never there at once. If there is no smaller one, the large
  // one does.
  while_memory_lasts([&] {
    step_aside();
    reserve(room_for(2 * std::size_t{size_}));
  });
  step_back();
}

void ShortList::encode(Encoder& to, Stamp oldest, Stamp newest) const {
  const auto is_left = [oldest](Stamp stamp) { return stamp >= oldest; };
  to.varint(static_cast<std::uint64_t>(std::ranges::count_if(stamps(), is_left)));
  for (std::size_t i = 0; i < size_; ++i) {
    if (!is_left(stamps()[i])) continue;
    to.u64(data_[i].lo);
    to.u64(data_[i].hi);
    to.varint(static_cast<std::uint64_t>(newest) - static_cast<std::uint64_t>(stamps()[i]));
  }
}

void ShortList::decode(Decoder& from, std::size_t most, Stamp newest) {
  assert(data_ == nullptr);
  const std::uint64_t count = from.varint();
  if (count > most || count * (sizeof(Digest) + 1) > from.remaining())
    throw CorruptSnapshot("the short list of keys is not there whole");
  if (count > 0) reserve(std::min(room_for(count), most));
  for (; size_ < count; ++size_) {
    const std::uint64_t lo = from.u64();
    const Digest digest{lo, from.u64()};
    if (size_ > 0 && !before(data_[size_ - 1], digest))
      throw CorruptSnapshot("the short list of keys is out of order");
    const std::uint64_t age = from.varint();
    if (age > static_cast<std::uint64_t>(newest) - static_cast<std::uint64_t>(kOldest))
      throw CorruptSnapshot("the short list has a key older than any can be");
    data_[size_] = digest;
    stamps_of(data_, room_)[size_] = newest - static_cast<Stamp>(age);
  }
}

}  // namespace sluice
