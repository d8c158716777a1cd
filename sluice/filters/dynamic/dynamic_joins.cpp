// Filters of a dynamic filter that are being joined, some words per key.
//
// When a filter is joined with another one, it leaves the series at once, but its table stays beside the
// other's until all counters were added. Up to a place, `joined`, they were. A counter's value is the
// sum of both from there on, so verdicts and encoded bytes are those of filters that were joined at
// once, however far the tables are. They may also be several: a filter may be joined again meanwhile.
#include <algorithm>
#include <new>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/filters/nibbles.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kCountersPerWord = 16;

unsigned counter_of(const LineTable& table, std::uint64_t at) noexcept {
  return with_words(table, [&](auto words) { return nibbles::get(words, at); });
}

void lower_in(const LineTable& table, std::uint64_t at) noexcept {
  with_words(table, [&](auto words) { nibbles::lower(words, at); });
}

// Adds words from `from` on until `until`. Zeros are not written: in pages they may not be cleared yet.
void add_words(const LineTable& to, const LineTable& other, std::uint64_t from,
               std::uint64_t until) noexcept {
  with_words(to, [&](auto words) {
    with_words(other, [&](auto others) {
      for (std::uint64_t at = from; at < until; ++at)
        if (const std::uint64_t more = others.get(at); more != 0)
          words.at(at) = nibbles::sum(words.get(at), more);
    });
  });
}

std::uint64_t words_of(const DynamicShape& shape) noexcept {
  return shape.bytes() / sizeof(std::uint64_t);
}

}  // namespace

std::span<const Dynamic::Join> Dynamic::joins_into(std::size_t index) const noexcept {
  return {std::ranges::lower_bound(joins_, index, {}, &Join::into),
          std::ranges::upper_bound(joins_, index, {}, &Join::into)};
}

// Of the tables that are still to be added to a filter, those that have a place for themselves.
template <class Act>
void Dynamic::each_rest(std::size_t index, std::uint64_t at, Act act) const noexcept {
  for (const Join& join : joins_into(index))
    if (at / kCountersPerWord >= join.joined) act(join.rest);
}

bool Dynamic::piece_claims(std::size_t index, ProbeWords& words) const noexcept {
  const DynamicPiece& piece = pieces_[index];
  if (!is_joining(index)) return piece.claims(words);
  for (unsigned probe = 0; probe < piece.shape.probes; ++probe) {
    const std::uint64_t at = scale_to(words[probe], piece.shape.bits);
    unsigned count = counter_of(piece.table, at);
    each_rest(index, at, [&](const LineTable& rest) { count += counter_of(rest, at); });
    if (count == 0) return false;
  }
  return true;
}

// As if there were one table. A counter that is stuck as a sum stays as it is in all its parts.
void Dynamic::erase(std::size_t index, ProbeWords& words) noexcept {
  DynamicPiece& piece = pieces_[index];
  if (!is_joining(index)) return piece.erase(words);
  for (unsigned probe = 0; probe < piece.shape.probes; ++probe) {
    const std::uint64_t at = scale_to(words[probe], piece.shape.bits);
    unsigned count = counter_of(piece.table, at);
    const LineTable* holder = count > 0 ? &piece.table : nullptr;
    each_rest(index, at, [&](const LineTable& rest) {
      const unsigned more = counter_of(rest, at);
      if (holder == nullptr && more > 0) holder = &rest;
      count += more;
    });
    if (holder != nullptr && count < nibbles::kStuck) lower_in(*holder, at);
  }
}

bool Dynamic::is_joining(std::size_t index) const noexcept {
  return std::ranges::binary_search(joins_, index, {}, &Join::into);
}

// By the filter that they are added to: hundreds may be joined at a time, and each lookup asks for them.
void Dynamic::sort_joins() noexcept {
  std::ranges::sort(joins_, {}, &Join::into);
}

// Without memory for a note of it, the tables are joined at once.
void Dynamic::join_later(std::size_t into, std::size_t from) noexcept {
  try {
    if (joins_.size() == joins_.capacity()) joins_.reserve(2 * joins_.size() + 1);
    joins_.push_back({into, 0, std::move(pieces_[from].table)});
    for (Join& join : joins_)
      if (join.into == from) join.into = into;
    sort_joins();
    return;
  } catch (const std::bad_alloc&) {
  } catch (const NoMemory&) {
  }
  for (Join& join : joins_)
    if (join.into == from) join_some(join, words_of(params_.shape(0)));
  drop_joined();
  pieces_[into].join(pieces_[from]);
}

void Dynamic::join_some(Join& join, std::uint64_t words) noexcept {
  const std::uint64_t until = std::min(words_of(params_.shape(0)), join.joined + words);
  add_words(pieces_[join.into].table, join.rest, join.joined, until);
  join.joined = until;
}

// For one key. All are joined before another filter is needed: a filter that was joined has room for
// that many keys.
void Dynamic::join_some() noexcept {
  Join& join = joins_.back();
  const std::uint64_t words = words_of(params_.shape(0));
  join_some(join, words / params_.moved_within() + 1);
  if (join.joined == words) drop_joined();
}

void Dynamic::join_rests() noexcept {
  for (Join& join : joins_) join_some(join, words_of(params_.shape(0)));
  drop_joined();
}

void Dynamic::drop_joined() noexcept {
  std::erase_if(joins_, [&](const Join& join) {
    if (join.joined < words_of(params_.shape(0))) return false;
    pieces_taken_ -= join.rest.taken();
    return true;
  });
  if (joins_.empty()) joins_ = Vector<Join>(memory());
}

// Words of a filter from `first` on, as they will be.
void Dynamic::joined_words(std::size_t index, std::uint64_t first,
                           std::span<std::uint64_t> out) const noexcept {
  with_words(pieces_[index].table, [&](auto words) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = words.get(first + i);
  });
  add_rests(index, first, out);
}

// What is still to be added to a filter, added to words of it from `first` on.
void Dynamic::add_rests(std::size_t index, std::uint64_t first,
                        std::span<std::uint64_t> words) const noexcept {
  for (const Join& join : joins_into(index))
    with_words(join.rest, [&](auto others) {
      for (std::uint64_t at = std::max(first, join.joined); at < first + words.size(); ++at)
        words[at - first] = nibbles::sum(words[at - first], others.get(at));
    });
}

}  // namespace sluice
