#include "sluice/filters/dynamic/dynamic.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice {
namespace {

// As in bloom.cpp: each key brings a line per probe.
constexpr std::size_t kKeysAhead = 3;
constexpr unsigned kFewProbes = 8;

double piece_fpr(const DynamicShape& shape, std::uint64_t keys) {
  return classic_fpr(shape.bits, shape.probes, keys);
}

// 1 − Π(1 − fᵢ), for filters with these numbers of keys, without what they share.
template <class Keys, class Fpr>
double series_fpr(std::span<const DynamicPiece> pieces, Keys keys_of, Fpr fpr_of) {
  double log_right = 0, fpr = 0;
  const DynamicPiece* before = nullptr;
  for (const DynamicPiece& piece : pieces) {
    const bool alike =
        before != nullptr && before->shape == piece.shape && keys_of(*before) == keys_of(piece);
    if (!alike) fpr = fpr_of(piece.shape, keys_of(piece));
    log_right += std::log1p(-std::max(0.0, fpr - piece.shared_fpr));
    before = &piece;
  }
  return -std::expm1(log_right);
}

// Different ones.
std::uint64_t keys_in(const DynamicPiece& piece) {
  return piece.keys - std::min(piece.doubles, piece.keys);
}

std::uint64_t capacity_of(const DynamicPiece& piece) {
  return piece.shape.capacity;
}

}  // namespace

Dynamic Dynamic::make(const Params& params, MemoryResource& memory) {
  if (const std::string wrong = params.what_is_wrong(); !wrong.empty()) throw BadParameters(wrong);
  Dynamic filter(params, memory);
  filter.append(params.shape(0));
  return filter;
}

Dynamic::Dynamic(const Params& params, MemoryResource& memory)
    : params_(params),
      pieces_(memory),
      matrix_(params.bits, memory),
      joins_(memory),
      asking_(params.ask == Ask::always) {}

// Calls judge(i, words) for each key of a batch in order, and prefetches ahead of it: in a matrix,
// the lines of that many probes; otherwise all lines of the filter that is written, and the first
// line of each other filter.
template <class Judge>
void Dynamic::ahead(std::span<const Digest> digests, unsigned probes, Judge judge) const {
  if (table_bytes() < kernels::kPrefetchFromBytes) {
    for (std::size_t i = 0; i < digests.size(); ++i) {
      ProbeWords words(digests[i]);
      judge(i, words);
    }
    return;
  }
  std::array<ProbeWords, kKeysAhead + 1> ring;
  const std::size_t count = digests.size();
  for (std::size_t i = 0; i < count + kKeysAhead; ++i) {
    if (i < count) {
      ProbeWords& words = ring[i % ring.size()];
      words.start(digests[i]);
      if (in_matrix()) {
        for (const MatrixGroup& group : matrix_.groups())
          with_words(group.table(), [&](auto table) {
            for (unsigned probe = 0; probe < probes; ++probe)
              __builtin_prefetch(table.address(group.first(scale_to(words[probe], params_.bits))),
                                 1);
          });
      } else {
        for (const DynamicPiece& piece : pieces_) __builtin_prefetch(piece.address(words[0]));
        const DynamicPiece& written = pieces_[std::min(active_, pieces_.size() - 1)];
        for (unsigned probe = 1; probe < written.shape.probes; ++probe)
          __builtin_prefetch(written.address(words[probe]), 1);
      }
    }
    if (i >= kKeysAhead) judge(i - kKeysAhead, ring[(i - kKeysAhead) % ring.size()]);
  }
}

// --- asking -------------------------------------------------------------------------------------

bool Dynamic::claims(ProbeWords& words) const noexcept {
  if (in_matrix()) return matrix_.claims(words, params_.probes);
  // The newest first: repeats tend to come soon.
  for (std::size_t i = pieces_.size(); i-- > 0;)
    if (joins_.empty() ? pieces_[i].claims(words) : piece_claims(i, words)) return true;
  return false;
}

bool Dynamic::may_contain(const Digest& digest) const noexcept {
  ProbeWords words(digest);
  return claims(words);
}

void Dynamic::may_contain(std::span<const Digest> digests,
                          std::span<Verdict> verdicts) const noexcept {
  assert(digests.size() == verdicts.size());
  const auto ask = [&](std::size_t i, ProbeWords& words) {
    verdicts[i] = static_cast<Verdict>(claims(words));
  };
  // In a matrix of many filters a new key is known after some probes more than in one filter, where
  // two are enough and fetching ahead costs more than it saves (`sluice_bench dynamic`).
  if (in_matrix() && pieces_.size() > 1) {
    ahead(digests, std::min(kFewProbes, params_.probes), ask);
    return;
  }
  for (std::size_t i = 0; i < digests.size(); ++i) {
    ProbeWords words(digests[i]);
    ask(i, words);
  }
}

// --- writing ------------------------------------------------------------------------------------

Verdict Dynamic::observe(ProbeWords& words) {
  if (claims(words)) return Verdict::duplicate;
  add(words);
  return Verdict::distinct;
}

Verdict Dynamic::observe(const Digest& digest) {
  ProbeWords words(digest);
  return observe(words);
}

void Dynamic::insert(ProbeWords& words) {
  if (!asking_ || !claims(words)) add(words);
}

void Dynamic::insert(const Digest& digest) {
  ProbeWords words(digest);
  insert(words);
}

void Dynamic::add(ProbeWords& words) {
  while (active_ < pieces_.size() && pieces_[active_].full()) ++active_;
  if (active_ == pieces_.size()) append(params_.shape(pieces_.size()));
  if (!joins_.empty()) [[unlikely]]
    join_some();
  DynamicPiece& piece = pieces_[active_];
  if (in_matrix()) {
    if (matrix_.widening()) matrix_.widen_some(params_.bits / params_.moved_within() + 1);
    matrix_.write(active_, words, params_.probes);
  } else {
    piece.write(words);
  }
  ++piece.keys;
  ++keys_;
  asking_ |= keys_ >= ask_from_;
}

void Dynamic::append(const DynamicShape& shape) {
  if (in_matrix()) {
    matrix_.reserve(pieces_.size() + 1);
    push_piece({shape, 0, LineTable()});
  } else {
    push_piece(DynamicPiece::make(shape, memory()));
  }
  series_changed();
}

void Dynamic::push_piece(DynamicPiece piece) {
  pieces_.push_back(std::move(piece));
  pieces_taken_ += pieces_.back().table.taken();
}

// Without asking, a share f₂ of all keys is written for nothing, because one of the s − 1 other
// filters already claims them; when that fills a whole filter, asking pays (§3.5.1).
void Dynamic::series_changed() {
  const std::span all(pieces_);
  const double in_vain = series_fpr(all.first(all.size() - 1), capacity_of, piece_fpr);
  const double capacity = static_cast<double>(pieces_.back().shape.capacity);
  // Also where there is no other filter.
  const bool never = !(in_vain * 1e18 > capacity);
  ask_from_ = never ? std::numeric_limits<std::uint64_t>::max()
                    : static_cast<std::uint64_t>(std::ceil(capacity / in_vain));
}

std::size_t Dynamic::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(digests.size() == verdicts.size());
  std::size_t judged = 0;
  while_memory_lasts([&] {
    ahead(digests, params_.probes, [&](std::size_t i, ProbeWords& words) {
      verdicts[i] = observe(words);
      judged = i + 1;
    });
  });
  return judged;
}

std::size_t Dynamic::insert(std::span<const Digest> digests) {
  std::size_t judged = 0;
  while_memory_lasts([&] {
    ahead(digests, params_.probes, [&](std::size_t i, ProbeWords& words) {
      insert(words);
      judged = i + 1;
    });
  });
  return judged;
}

void Dynamic::clear() noexcept {
  joins_ = Vector<Join>(memory());
  pieces_.erase(pieces_.begin() + 1, pieces_.end());
  pieces_[0].keys = pieces_[0].doubles = 0;
  pieces_[0].shared_fpr = 0;
  pieces_taken_ = pieces_[0].table.taken();
  in_matrix() ? matrix_.clear() : pieces_[0].table.clear();
  keys_ = kept_ = forgotten_ = forget_misses_ = active_ = 0;
  asking_ = params_.ask == Ask::always;
  series_changed();
}

// --- numbers ------------------------------------------------------------------------------------

std::uint64_t Dynamic::table_bytes() const noexcept {
  std::uint64_t bytes = matrix_.bytes();
  for (const DynamicPiece& piece : pieces_) bytes += piece.table.size();
  return bytes;
}

DynamicStats Dynamic::series() const {
  std::uint64_t capacity = 0;
  for (const DynamicPiece& piece : pieces_) capacity += piece.shape.capacity;
  return {.filters = pieces_.size(),
          .kept = kept_,
          .real_capacity = capacity - std::min(kept_, keys_),
          .room = capacity - keys_,
          .insert_asks = asking_};
}

FilterStats Dynamic::stats() const {
  // One of several that is full has taken all its keys, and was offered more.
  const auto present_fpr = [&](const DynamicShape& shape, std::uint64_t keys) {
    const bool full = pieces_.size() > 1 && keys >= shape.capacity;
    return classic_fpr_of_taken(shape.bits, shape.probes, keys,
                                full ? std::numeric_limits<std::uint64_t>::max() : shape.capacity);
  };
  return {.keys = keys_,
          .capacity = series().real_capacity,
          .bytes = bytes(),
          .target_fpr = params_.target_fpr,
          .predicted_fpr = series_fpr(pieces_, keys_in, present_fpr),
          .planned_fpr = series_fpr(pieces_, capacity_of, piece_fpr),
          .forgotten = forgotten_,
          .forget_misses = forget_misses_,
          .forget_kept = kept_};
}

static_assert(ForgettingFilter<Dynamic> && MergingFilter<Dynamic>);

}  // namespace sluice
