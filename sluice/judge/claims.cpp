#include "sluice/judge/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "sluice/base/bits.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

std::uint64_t checked_most(std::uint64_t most) {
  if (most == 0 || most > Claims::kMostClaims)
    throw BadParameters(fmt::format("`claims` must be between 1 and {}, not {}",
                                    format_count(Claims::kMostClaims), format_count(most)));
  return most;
}

Nanoseconds end_of(Nanoseconds now, Nanoseconds lease) {
  constexpr Nanoseconds kEnd = std::numeric_limits<Nanoseconds>::max();
  return now > kEnd - lease ? kEnd : now + lease;
}

KeyMemory::When when_of(const Claims::Request& request) {
  return {.time = request.event_time ? *request.event_time : request.now.value_or(0),
          .event_time = request.event_time.has_value()};
}

template <class T>
void free_pages(MemoryResource& memory, Vector<T*>& pages, std::size_t each) {
  for (T* page : pages) memory.deallocate(page, each * sizeof(T), alignof(T));
  pages.clear();
}

}  // namespace

Claims::Claims(std::uint64_t most, MemoryResource& memory)
    : memory_(&memory),
      most_(checked_most(most)),
      salt_(random_salt()),
      pages_(memory),
      slots_(memory),
      old_slots_(memory),
      next_slots_(memory) {
  slots_.mask = std::bit_ceil(2 * std::min<std::uint64_t>(most, kPageEntries)) - 1;
  add_page_of(slots_);
}

Claims::Claims(Claims&& other) noexcept
    : memory_(other.memory_),
      most_(other.most_),
      salt_(other.salt_),
      size_(std::exchange(other.size_, 0)),
      in_pages_(std::exchange(other.in_pages_, 0)),
      pages_(std::move(other.pages_)),
      slots_(std::move(other.slots_)),
      old_slots_(std::move(other.old_slots_)),
      next_slots_(std::move(other.next_slots_)),
      cursor_(other.cursor_),
      side_(other.side_) {}

Claims::~Claims() {
  free_all();
}

void Claims::free_all() noexcept {
  free_pages(*memory_, pages_, kPageEntries);
  for (Slots* const slots : {&slots_, &old_slots_, &next_slots_}) free_slots(*slots);
}

std::uint64_t Claims::bytes() const noexcept {
  return in_pages_ + taken_by(pages_) + taken_by(slots_.pages) + taken_by(old_slots_.pages) +
         taken_by(next_slots_.pages);
}

Claims::Salt Claims::random_salt() {
  Salt salt;
  system_entropy(std::as_writable_bytes(std::span(&salt, 1)));
  return salt;
}

// Someone who can choose digests cannot choose their slots: each factor has a secret of its own. One
// round is not enough. With keys that differ in a few bits only, it displaced keys by more than 64
// slots on average under one salt in 300; two rounds do as well as random keys.
std::uint64_t Claims::hash_of(const Digest& key) const noexcept {
  const std::uint64_t mixed = fold_multiply(key.lo ^ salt_.first.lo, key.hi ^ salt_.first.hi);
  return fold_multiply(mixed ^ salt_.second.lo, salt_.second.hi | 1);
}

std::uint64_t Claims::longest_search() const noexcept {
  std::size_t longest = 0;
  for (std::size_t place = 0; place < size_; ++place)
    longest = std::max(longest, distance_of(at(place)) + 1);
  return longest;
}

// Where the key's place stands, or would.
std::size_t Claims::slot_of(const Slots& slots, const Digest& key,
                            std::uint64_t hash) const noexcept {
  std::size_t i = hash & slots.mask;
  while (slots[i] != kNone && at(slots[i]).key != key) i = (i + 1) & slots.mask;
  return i;
}

Claims::Entry* Claims::find(const Digest& key) noexcept {
  const std::uint64_t hash = hash_of(key);
  std::uint32_t place = slots_[slot_of(slots_, key, hash)];
  if (place == kNone && !old_slots_.pages.empty())
    place = old_slots_[slot_of(old_slots_, key, hash)];
  return place == kNone ? nullptr : &at(place);
}

// Shortly before this table is full, each claim makes a page of the next one, so that it is whole in
// time. That only prepares: if memory is refused, there may be some when it is needed.
void Claims::reserve_one() {
  move_some();
  const std::size_t limit = slots_.count() / 2;
  if (size_ + 1 > limit)
    double_slots();
  else if (size_ >= limit - limit / 256 && most_ > limit && limit >= kPageSlots)
    while_memory_lasts([&] {
      start_next(2 * slots_.count());
      if (!next_slots_.whole()) add_page_of(next_slots_);
    });
  if (size_ < pages_.size() * kPageEntries) return;
  if (pages_.size() == pages_.capacity()) pages_.reserve(2 * pages_.size() + 1);
  pages_.push_back(add_page(kPageEntries, Entry{}));  // there is room for the pointer
}

void Claims::add_page_of(Slots& slots) {
  slots.pages.reserve(slots.page_count());
  slots.pages.push_back(add_page(slots.per_page(), kNone));
}

void Claims::free_slots(Slots& slots) noexcept {
  for (const std::uint32_t* const page : slots.pages)
    in_pages_ -= memory_->usable(page, slots.per_page() * sizeof *page, alignof(std::uint32_t));
  free_pages(*memory_, slots.pages, slots.per_page());
  slots.pages = Vector<std::uint32_t*>(*memory_);
}

void Claims::start_next(std::size_t count) noexcept {
  if (next_slots_.pages.empty()) next_slots_.mask = count - 1;
}

// A table of n slots with n / 2 claims is empty after 1.5 n steps: n / 10 calls, and at least n / 2 are
// still to come until the next one is full.
void Claims::move_some() noexcept {
  constexpr int kSteps = 16;
  for (int i = 0; i < kSteps && !old_slots_.pages.empty(); ++i) {
    if (cursor_ == old_slots_.count()) {
      free_slots(old_slots_);
    } else if (const std::uint32_t place = old_slots_[cursor_]; place != kNone) {
      remove_slot(old_slots_, cursor_);
      put_slot(place);
    } else {
      ++cursor_;
    }
  }
}

// Of a claim that has none.
void Claims::put_slot(std::size_t place) noexcept {
  Entry& entry = at(place);
  const std::size_t i = slot_of(slots_, entry.key, hash_of(entry.key));
  entry.slot = static_cast<std::uint32_t>(i);
  entry.side = side_;
  slots_[i] = static_cast<std::uint32_t>(place);
}

// Pages are left to be made only if the table is small, or there was no memory for them before. The
// same goes for claims that are left to be moved, but they never are.
void Claims::double_slots() {
  start_next(2 * slots_.count());
  while (!next_slots_.whole()) add_page_of(next_slots_);
  while (!old_slots_.pages.empty()) move_some();
  std::swap(old_slots_, slots_);
  std::swap(slots_, next_slots_);
  side_ = !side_;
  cursor_ = 0;
  move_some();
}

template <class T>
T* Claims::add_page(std::size_t each, const T& with) {
  void* const block = memory_->allocate(each * sizeof(T), alignof(T));
  in_pages_ += memory_->usable(block, each * sizeof(T), alignof(T));
  std::uninitialized_fill_n(static_cast<T*>(block), each, with);
  return static_cast<T*>(block);
}

void Claims::move_to(std::size_t place, const Entry& entry) noexcept {
  at(place) = entry;
  slots_of(entry)[entry.slot] = static_cast<std::uint32_t>(place);
}

// To where it belongs in the heap, up or down.
void Claims::sift(std::size_t place) noexcept {
  const Entry entry = at(place);
  while (place > 0 && entry.ends_before(at((place - 1) / 2))) {
    move_to(place, at((place - 1) / 2));
    place = (place - 1) / 2;
  }
  for (std::size_t child; (child = 2 * place + 1) < size_; place = child) {
    if (child + 1 < size_ && at(child + 1).ends_before(at(child))) ++child;
    if (entry.ends_before(at(child))) break;
    move_to(place, at(child));
  }
  move_to(place, entry);
}

void Claims::add(const Entry& entry) noexcept {
  const std::size_t place = size_++;
  at(place) = entry;
  put_slot(place);
  sift(place);
}

void Claims::remove(Entry& entry) noexcept {
  const std::size_t place = place_of(entry);
  remove_slot(slots_of(entry), entry.slot);
  if (--size_ == place) return;
  move_to(place, at(size_));
  sift(place);
}

// Those behind it move up, so that a search never meets a hole.
void Claims::remove_slot(Slots& slots, std::size_t hole) noexcept {
  const std::size_t mask = slots.mask;
  for (std::size_t i = (hole + 1) & mask; slots[i] != kNone; i = (i + 1) & mask) {
    Entry& entry = at(slots[i]);
    const std::size_t home = hash_of(entry.key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    slots[hole] = slots[i];
    entry.slot = static_cast<std::uint32_t>(hole);
    hole = i;
  }
  slots[hole] = kNone;
}

// The first of the heap, if it has ended: true. `has_memory` becomes false when the filter takes no
// key; it is not asked again in this call.
bool Claims::retire_first(KeyMemory& memory, Nanoseconds now, bool& has_memory) {
  if (size_ == 0 || at(0).until > now) return false;
  Entry& first = at(0);
  if (first.delivered) has_memory = has_memory && memory.remember(first.key, first.when);
  if (!first.delivered || has_memory) {
    remove(first);
  } else {
    first.until = end_of(now, kRetryAfter);
    sift(0);
  }
  return true;
}

void Claims::tend(KeyMemory& memory, Nanoseconds now, std::size_t most) {
  bool has_memory = true;
  // None twice: at the end of time, what is put off is due again at once.
  for (most = std::min(most, size_); most > 0 && retire_first(memory, now, has_memory); --most) {
  }
}

bool Claims::hand_over(KeyMemory& memory, const Digest& key) {
  Entry* const entry = find(key);
  if (entry == nullptr || !entry->delivered || !memory.remember(key, entry->when)) return false;
  remove(*entry);
  return true;
}

ClaimAnswer Claims::claim(KeyMemory& memory, const Request& request) {
  const Nanoseconds now = request.now.value_or(0);
  if (request.lease <= 0) throw BadParameters("`lease` must be more than nothing");
  const Nanoseconds until = end_of(now, request.lease);
  // It is older than the window, perhaps: the filter knows.
  hand_over(memory, request.key);
  Entry* const entry = find(request.key);
  if (entry != nullptr && entry->delivered) return ClaimAnswer::duplicate;
  if (entry != nullptr && entry->until > now) {
    if (entry->token != request.token) return ClaimAnswer::pending;
    entry->until = std::max(entry->until, until);
    sift(place_of(*entry));
    return ClaimAnswer::claimed;
  }
  if (memory.remembers(request.key, when_of(request))) return ClaimAnswer::duplicate;
  if (entry != nullptr) remove(*entry);
  // Two per claim, so that expired claims do not pile up; more only if there is no room.
  tend(memory, now, 2);
  bool has_memory = true;
  for (std::size_t left = size_;
       size_ >= most_ && left > 0 && retire_first(memory, now, has_memory); --left) {
  }
  if (size_ >= most_)
    throw ClaimsFull(fmt::format(
        "{} keys are pending, which is the limit: confirm or release some, or raise the limit",
        format_count(size_)));
  bool reserved = memory.may_take();
  if (reserved) memory.took(reserved = while_memory_lasts([&] { reserve_one(); }));
  if (!reserved)
    throw NoMemory(
        "there is no memory for one more pending key: confirm or release some, or free memory");
  add({.key = request.key,
       .token = request.token,
       .until = until,
       .when = request.event_time ? when_of(request) : KeyMemory::When{}});
  return ClaimAnswer::claimed;
}

ConfirmAnswer Claims::confirm(KeyMemory& memory, const Request& request) {
  const Nanoseconds now = request.now.value_or(0);
  Entry* const entry = find(request.key);
  if (entry != nullptr && entry->delivered) return ConfirmAnswer::already;
  if (entry == nullptr || entry->until <= now)
    return memory.remembers(request.key, when_of(request)) ? ConfirmAnswer::already
                                                           : ConfirmAnswer::refused;
  if (entry->token != request.token) return ConfirmAnswer::refused;
  if (!entry->when.event_time) entry->when = when_of(request);
  if (memory.remember(request.key, entry->when))
    remove(*entry);
  else
    entry->delivered = true;
  return ConfirmAnswer::confirmed;
}

bool Claims::release(const Digest& key, const Token& token, Nanoseconds now) noexcept {
  if (!is_held_by(key, token, now)) return false;
  remove(*find(key));
  return true;
}

bool Claims::forget(const Digest& key) noexcept {
  Entry* const entry = find(key);
  if (entry == nullptr || !entry->delivered) return false;
  remove(*entry);
  return true;
}

bool Claims::settle(const Digest& key) noexcept {
  Entry* const entry = find(key);
  if (entry == nullptr) return false;
  remove(*entry);
  return true;
}

std::optional<Nanoseconds> Claims::event_time_of(const Digest& key) const noexcept {
  const Entry* const entry = find(key);
  if (entry == nullptr || !entry->when.event_time) return std::nullopt;
  return entry->when.time;
}

bool Claims::is_held_by(const Digest& key, const Token& token, Nanoseconds now) const noexcept {
  const Entry* const entry = find(key);
  return entry != nullptr && !entry->delivered && entry->until > now && entry->token == token;
}

std::optional<KeyMemory::When> Claims::delivered(const Digest& key) const noexcept {
  const Entry* const entry = find(key);
  if (entry == nullptr || !entry->delivered) return std::nullopt;
  return entry->when;
}

std::uint64_t Claims::pending(Nanoseconds now) const noexcept {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < size_; ++i) count += !at(i).delivered && at(i).until > now ? 1 : 0;
  return count;
}

Claims::State Claims::state_of(const Digest& key, Nanoseconds now) const noexcept {
  const Entry* const entry = find(key);
  if (entry == nullptr) return State::unknown;
  if (entry->delivered) return State::delivered;
  return entry->until > now ? State::pending : State::unknown;
}

// In the heap's order: what is decoded goes on as the original does.
void Claims::encode(Encoder& to) const {
  to.u32(static_cast<std::uint32_t>(size_));
  for (std::size_t place = 0; place < size_; ++place) {
    const Entry& entry = at(place);
    for (const std::uint64_t word : {entry.key.lo, entry.key.hi, entry.token.lo, entry.token.hi})
      to.u64(word);
    to.u64(static_cast<std::uint64_t>(entry.until));
    to.u64(static_cast<std::uint64_t>(entry.when.time));
    to.u8(static_cast<std::uint8_t>(entry.delivered | entry.when.event_time << 1));
  }
}

Claims Claims::decode(Decoder& from, std::uint64_t most, MemoryResource& memory) {
  const std::uint64_t count = from.u32();
  if (count > kMostClaims) throw CorruptSnapshot("claims: more keys are pending than ever can be");
  from.expect_remaining(count * kEncodedEntry, "the pending keys");
  Claims claims(std::max(most, count), memory);
  std::uint64_t displaced = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry;
    for (std::uint64_t* word : {&entry.key.lo, &entry.key.hi, &entry.token.lo, &entry.token.hi})
      *word = from.u64();
    entry.until = static_cast<Nanoseconds>(from.u64());
    entry.when.time = static_cast<Nanoseconds>(from.u64());
    const std::uint8_t bits = from.u8();
    entry.delivered = (bits & 1) != 0;
    entry.when.event_time = (bits & 2) != 0;
    if (bits > 3 || (bits == 0 && entry.when.time != 0))
      throw CorruptSnapshot("claims: a key is neither pending nor delivered");
    if (i > 0 && entry.ends_before(claims.at((i - 1) / 2)))
      throw CorruptSnapshot("claims: the keys are not in the order of their leases");
    if (claims.find(entry.key) != nullptr) throw CorruptSnapshot("claims: a key is pending twice");
    claims.reserve_one();
    claims.add(entry);
    displaced += claims.distance_of(claims.at(i));
    // About one slot each, whatever the keys are. A second line of defence: this bounds the work of
    // reading even if somebody knows the salt.
    if (displaced > 64 * (i + 64)) throw CorruptSnapshot("claims: the keys are too much alike");
  }
  return claims;
}

}  // namespace sluice
