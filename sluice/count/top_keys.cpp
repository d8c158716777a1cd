#include "sluice/count/top_keys.hpp"

#include <algorithm>
#include <cstring>

namespace sluice {

TopKeys::TopKeys(const WindowSizes& windows) : windows_(windows) {
  counters_.reserve(kKeys);
  details_.reserve(kKeys);
  low_.reserve(kKeys);
  index_.fill(kNone);
}

// Of the digest, or the free one where it would go. The index is at most a quarter full.
std::size_t TopKeys::place_of(const Digest& digest) const noexcept {
  std::size_t place = home_of(digest);
  while (index_[place] != kNone && counters_[index_[place]].digest != digest)
    place = (place + 1) % kIndexSlots;
  return place;
}

void TopKeys::put_in_index(std::uint16_t counter) noexcept {
  index_[place_of(counters_[counter].digest)] = counter;
}

void TopKeys::take_from_index(const Digest& digest) noexcept {
  std::size_t hole = place_of(digest);
  index_[hole] = kNone;
  for (std::size_t place = (hole + 1) % kIndexSlots; index_[place] != kNone;
       place = (place + 1) % kIndexSlots) {
    const std::size_t home = home_of(counters_[index_[place]].digest);
    if ((place - home) % kIndexSlots < (place - hole) % kIndexSlots) continue;
    index_[hole] = index_[place];
    index_[hole = place] = kNone;
  }
}

std::uint16_t TopKeys::lowest() {
  for (;;) {
    while (!low_.empty() && counters_[low_.back()].count != bound_) low_.pop_back();
    if (!low_.empty()) return low_.back();
    bound_ = std::ranges::min(counters_, {}, &Counter::count).count;
    for (std::size_t i = 0; i < counters_.size(); ++i)
      if (counters_[i].count == bound_) low_.push_back(static_cast<std::uint16_t>(i));
  }
}

std::uint16_t TopKeys::replace(const Digest& digest) {
  auto number = static_cast<std::uint16_t>(counters_.size());
  if (number < kKeys) {
    counters_.emplace_back();
    details_.emplace_back();
  } else {
    number = lowest();
    take_from_index(counters_[number].digest);
  }
  counters_[number].digest = digest;
  counters_[number].has_details = false;
  put_in_index(number);
  return number;
}

void TopKeys::keep_key(std::uint16_t number, std::string_view key) noexcept {
  Details& details = details_[number];
  counters_[number].has_details = true;
  details.cut = key.size() > kKeyBytes;
  details.key_bytes = static_cast<std::uint32_t>(std::min(key.size(), kKeyBytes));
  if (!key.empty()) std::memcpy(details.key.data(), key.data(), details.key_bytes);
}

void TopKeys::repeat(std::uint16_t number, std::string_view key, std::int64_t position) noexcept {
  if (!counters_[number].has_details) {
    details_[number].windows.begin(counters_[number].first);
    keep_key(number, key);
  }
  details_[number].windows.observe(position, windows_);
}

void TopKeys::observe(const Digest& digest, std::string_view key, std::int64_t position,
                      std::uint64_t times) {
  std::uint16_t number = index_[place_of(digest)];
  if (number != kNone) {
    Counter& counter = counters_[number];
    ++counter.count;
    ++counter.least;
    ++counter.most;
    repeat(number, key, position);
  } else {
    number = replace(digest);
    Counter& counter = counters_[number];
    counter.count = counter.most = bound_ + 1;
    counter.least = 1;
    counter.first = position;
  }
  if (times == 0) return;
  counters_[number].least = counters_[number].most = times;
  if (!counters_[number].has_details && times > 1) {
    keep_key(number, key);
    details_[number].windows.begin(position);
  }
}

void TopKeys::observe_known(const Digest& digest, std::string_view key, std::int64_t position,
                            std::uint64_t times) {
  std::uint16_t number = index_[place_of(digest)];
  const bool repeated = number != kNone;
  if (!repeated) {
    if (ignores(times) || (counters_.size() == kKeys && times <= counters_[lowest()].count)) return;
    number = replace(digest);
  }
  Counter& counter = counters_[number];
  counter.count = counter.least = counter.most = times;
  if (repeated) return repeat(number, key, position);
  counter.first = position;
  keep_key(number, key);
  details_[number].windows.begin(position);
}

const RepeatWindows* TopKeys::windows_of(const Digest& digest) const noexcept {
  const std::uint16_t number = index_[place_of(digest)];
  if (number == kNone || !counters_[number].has_details) return nullptr;
  return &details_[number].windows;
}

std::uint64_t TopKeys::floor() const noexcept {
  if (counters_.size() < kKeys) return bound_;
  return std::ranges::min(counters_, {}, &Counter::count).count;
}

std::uint64_t TopKeys::most_beside(std::span<const TopKey> listed) const {
  std::uint64_t most = floor();
  for (const Counter& counter : counters_)
    if (counter.most > most &&
        std::ranges::find(listed, counter.digest, &TopKey::digest) == listed.end())
      most = counter.most;
  return most;
}

std::vector<TopKey> TopKeys::top(std::size_t most) const {
  std::vector<TopKey> keys;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const Counter& counter = counters_[i];
    const Details& details = details_[i];
    if (counter.has_details)
      keys.push_back({counter.digest, counter.least, counter.most,
                      std::string(details.key.data(), details.key_bytes), details.cut});
  }
  std::ranges::sort(keys, [](const TopKey& a, const TopKey& b) {
    if (a.least != b.least) return a.least > b.least;
    return a.most != b.most ? a.most > b.most : a.key < b.key;
  });
  if (keys.size() > most) keys.resize(most);
  return keys;
}

}  // namespace sluice
