// What a dynamic filter does with whole filters: taking keys back and joining what is left, union,
// intersection, and snapshots in pieces.
#include <algorithm>
#include <array>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"

namespace sluice {

// --- taking back --------------------------------------------------------------------------------

bool Dynamic::forget(const Digest& digest) noexcept {
  assert(params_.forget && "this filter was made without forget=yes");
  if (!params_.forget) return false;
  if (!joins_.empty()) join_some();
  ProbeWords words(digest);
  std::size_t found = 0, claimants = 0;
  for (std::size_t i = 0; i < pieces_.size() && claimants < 2; ++i) {
    if (!piece_claims(i, words)) continue;
    found = i;
    ++claimants;
  }
  if (claimants != 1) {
    // If several filters claim a key, all but one are wrong, and lowering the counters of a wrong
    // one would lose keys.
    ++(claimants == 0 ? forget_misses_ : kept_);
    return false;
  }
  DynamicPiece& piece = pieces_[found];
  erase(found, words);
  // Strangers may have been forgotten before.
  keys_ -= piece.keys > 0;
  piece.keys -= piece.keys > 0;
  ++forgotten_;
  active_ = 0;
  // No two filters could be joined before, so a pair that can be joined now includes this one.
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i == found || pieces_[i].keys + piece.keys > params_.joined_up_to()) continue;
    combine(std::min(i, found), std::max(i, found), false);
    break;
  }
  return true;
}

// Into the lower one, so that most pieces of a snapshot stay where they were.
void Dynamic::combine(std::size_t into, std::size_t from, bool at_once) noexcept {
  if (in_matrix())
    matrix_.join(into, from);
  else if (at_once)
    pieces_[into].join(pieces_[from]);
  else
    join_later(into, from);
  pieces_[into].keys += pieces_[from].keys;
  pieces_[into].doubles += pieces_[from].doubles;
  remove(from);
}

// The last one takes its place, and no other moves.
void Dynamic::remove(std::size_t index) noexcept {
  const std::size_t last = pieces_.size() - 1;
  if (in_matrix()) {
    matrix_.clear(index);
    if (index != last) {
      matrix_.join(index, last);
      matrix_.clear(last);
    }
  }
  pieces_taken_ -= pieces_[index].table.taken();
  if (index != last) pieces_[index] = std::move(pieces_[last]);
  for (Join& join : joins_)
    if (join.into == last) join.into = index;
  sort_joins();
  pieces_.pop_back();
  // What was before a filter may not be any more.
  for (DynamicPiece& piece : pieces_) piece.shared_fpr = 0;
  active_ = 0;
  series_changed();
}

void Dynamic::combine_all() noexcept {
  for (std::size_t into = 0; into < pieces_.size(); ++into)
    for (std::size_t from = into + 1; from < pieces_.size();) {
      if (pieces_[into].keys + pieces_[from].keys <= pieces_[into].shape.capacity)
        combine(into, from, true);
      else
        ++from;
    }
}

// --- sets of sets -------------------------------------------------------------------------------

DynamicPiece Dynamic::copy_of(std::size_t index, MemoryResource& memory) const {
  if (!in_matrix()) {
    DynamicPiece piece = pieces_[index].copy(memory);
    if (is_joining(index))
      with_words(piece.table, [&](auto words) {
        for (std::uint64_t at = 0; at < piece.shape.bytes() / sizeof(std::uint64_t); ++at)
          add_rests(index, at, std::span(&words.at(at), 1));
      });
    return piece;
  }
  DynamicPiece piece = DynamicPiece::make(pieces_[index].shape, memory);
  piece.keys = pieces_[index].keys;
  with_words(piece.table, [&](auto words) {
    for (std::uint64_t at = 0; at < matrix_.rows() / 64; ++at)
      matrix_.gather(index, at, std::span(&words.at(at), 1));
  });
  return piece;
}

void Dynamic::adopt(DynamicPiece piece) {
  const std::uint64_t keys = piece.keys;
  if (in_matrix()) {
    matrix_.reserve(pieces_.size() + 1);
    push_piece({piece.shape, keys, LineTable()});
    const LineTable* const table = &piece.table;
    matrix_.weave(pieces_.size() - 1, std::span(&table, 1));
  } else {
    push_piece(std::move(piece));
  }
  keys_ += keys;
}

// The next pieces of a snapshot. For a matrix several together: a pass over its rows for each would
// take most of the time. There is room for all of them.
void Dynamic::adopt_some(DynamicPieces& pieces) {
  if (!in_matrix()) return adopt(pieces.next());
  std::array<DynamicPiece, MatrixGroup::kMostWoven> some;
  std::array<const LineTable*, MatrixGroup::kMostWoven> tables;
  const std::size_t count = std::min<std::uint64_t>(some.size(), pieces.left());
  for (std::size_t i = 0; i < count; ++i) {
    some[i] = pieces.next();
    tables[i] = &some[i].table;
  }
  matrix_.weave(pieces_.size(), std::span(tables).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    keys_ += some[i].keys;
    push_piece({some[i].shape, some[i].keys, LineTable()});
  }
}

void Dynamic::merge(const Dynamic& other) {
  if (params_.tighten != 0)
    throw BadParameters(
        "filters 'dynamic' with tighten= cannot be merged: the error that each promises is for its "
        "own series");
  if (!params_.same_series(other.params_))
    throw BadParameters(
        "filters 'dynamic' of different keys, fpr, bytes, probes or forget cannot be merged: make "
        "both with the same ones");
  if (&other == this) return;  // it holds nothing that this one does not
  join_rests();
  const std::size_t before = pieces_.size();
  try {
    for (std::size_t i = 0; i < other.pieces_.size(); ++i) adopt(other.copy_of(i, memory()));
  } catch (...) {
    while (pieces_.size() > before) {
      keys_ -= pieces_.back().keys;
      remove(pieces_.size() - 1);
    }
    throw;
  }
  kept_ += other.kept_;
  asking_ |= other.asking_;
  series_changed();
  combine_all();
  find_overlaps();
}

Dynamic Dynamic::intersect(const Dynamic& a, const Dynamic& b) {
  if (a.params_.forget || a.params_.tighten != 0 || !a.params_.same_series(b.params_))
    throw BadParameters(
        "filters 'dynamic' can be intersected when made with forget=no, without tighten=, and with "
        "the same keys, fpr, bytes and probes");
  Dynamic both(a.params_, a.memory());
  for (std::size_t i = 0; i < a.pieces_.size(); ++i) {
    const DynamicPiece one = a.copy_of(i, a.memory());
    for (std::size_t j = 0; j < b.pieces_.size(); ++j) {
      DynamicPiece meeting = b.copy_of(j, a.memory());
      meeting.meet(one);
      meeting.keys = std::min(meeting.keys, one.keys);  // no more than either has
      if (meeting.table.count_ones() != 0) both.adopt(std::move(meeting));
    }
  }
  if (both.pieces_.empty())
    both.append(both.params_.shape(0));
  else
    both.series_changed();
  return both;
}

// --- snapshots ----------------------------------------------------------------------------------

void Dynamic::encode_header(Encoder& to) const {
  to.u64(params_.bits);
  to.u32(params_.probes);
  to.u64(params_.capacity);
  to.f64(params_.target_fpr);
  to.u8(params_.forget ? 1 : 0);
  to.u8(static_cast<std::uint8_t>(params_.layout));
  to.u8(static_cast<std::uint8_t>(params_.ask));
  to.f64(params_.tighten);
  to.u32(params_.growth);
  to.u64(pieces_.size());
  to.u64(kept_);
  to.u8(asking_ ? 1 : 0);
}

void Dynamic::encode_payload(Encoder& to) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    encode_piece_fields(pieces_[i], to);
    const bool joining = is_joining(i);
    if (!in_matrix() && !joining) {
      pieces_[i].table.encode(to);
      continue;
    }
    // Some at a time: a whole filter of its own would be a second copy.
    std::uint64_t words[512];
    const std::uint64_t count = pieces_[i].shape.bytes() / sizeof(std::uint64_t);
    for (std::uint64_t word = 0; word < count; word += std::size(words)) {
      const std::span some(words, std::min<std::uint64_t>(std::size(words), count - word));
      if (to.skip(some.size_bytes())) continue;
      if (joining)
        joined_words(i, word, some);
      else
        matrix_.gather(i, word, some);
      to.bytes(std::as_bytes(some));
    }
  }
}

DynamicHeader DynamicHeader::decode(Decoder& header) {
  DynamicHeader fields;
  Dynamic::Params& params = fields.params;
  params.bits = header.u64();
  params.probes = header.u32();
  params.capacity = header.u64();
  params.target_fpr = header.f64();
  const std::uint8_t forget = header.u8(), layout = header.u8(), ask = header.u8();
  params.tighten = header.f64();
  params.growth = header.u32();
  fields.filters = header.u64();
  fields.kept = header.u64();
  const std::uint8_t asking = header.u8();
  if (forget > 1 || layout > 1 || ask > 1 || asking > 1)
    throw CorruptSnapshot("filter 'dynamic' has a field of other values than it writes");
  params.forget = forget == 1;
  params.layout = static_cast<Dynamic::Layout>(layout);
  params.ask = static_cast<Dynamic::Ask>(ask);
  fields.asking = asking == 1;
  if (const std::string wrong = params.what_is_wrong(); !wrong.empty())
    throw CorruptSnapshot(wrong);
  if (fields.filters == 0) throw CorruptSnapshot("filter 'dynamic' has no filter at all");
  if (params.ask == Dynamic::Ask::always && !fields.asking)
    throw CorruptSnapshot("filter 'dynamic' with ask=always does not ask");
  if (fields.kept != 0 && !params.forget)
    throw CorruptSnapshot("filter 'dynamic' kept keys that it could not be told to forget");
  return fields;
}

DynamicPieces::DynamicPieces(Decoder& header, Decoder& payload, MemoryResource& memory)
    : header_(DynamicHeader::decode(header)), payload_(payload), memory_(memory) {
  if (header_.params.tighten != 0) return;  // then each piece is checked as it comes
  const std::uint64_t each = kDynamicPieceFields + header_.params.shape(0).bytes();
  if (payload.remaining() % each != 0 || payload.remaining() / each != header_.filters)
    throw CorruptSnapshot("the filters of 'dynamic' take other bytes than their number says");
}

namespace {

// With `tighten` the shape of later filters depends on rounding, so they need only be similar. Many
// small ones would make the next a very large one.
bool is_planned(const DynamicShape& shape, const Dynamic::Params& params, std::size_t index) {
  if (params.tighten == 0 || index == 0) return shape == params.shape(0);
  const auto is_like = [](std::uint64_t one, std::uint64_t other) {
    return one <= other + other / 16 && other <= one + one / 16;
  };
  try {
    const DynamicShape planned = params.shape(index);
    return is_like(shape.bits, planned.bits) && is_like(shape.capacity, planned.capacity);
  } catch (const BadParameters&) {
    return false;  // none is so large
  }
}

}  // namespace

DynamicPiece DynamicPieces::next() {
  assert(left() > 0);
  DynamicPiece piece = decode_piece(payload_, header_.params.forget, memory_);
  if (!is_planned(piece.shape, header_.params, read_))
    throw CorruptSnapshot("a filter of 'dynamic' is of another size than its parameters say");
  ++read_;
  return piece;
}

Dynamic Dynamic::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  DynamicPieces pieces(header, payload, memory);
  Dynamic filter(pieces.header().params, memory);
  if (filter.in_matrix()) filter.matrix_.reserve(pieces.header().filters);
  while (pieces.left() > 0) filter.adopt_some(pieces);
  payload.expect_remaining(0, "what follows the filters of 'dynamic'");
  filter.kept_ = pieces.header().kept;
  filter.asking_ = pieces.header().asking;
  filter.series_changed();
  filter.find_overlaps();
  return filter;
}

}  // namespace sluice
