#include "sluice/snapshot/pull.hpp"

#include <fmt/format.h>
// For the size of XXH3_state_t.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/stretch.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/header.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
struct SnapshotPull::State {
  State(const Hasher& hasher, const AnyFilter& of, const Labels& labels, const Sections& with)
      : filter(of), sections(with) {
    CountingEncoder count;
    filter.encode_payload(count);
    payload_bytes = count.count();
    preamble = encode_preamble(hasher, filter, labels, sections, payload_bytes);
    for (const Section& section : sections) payload_bytes += section.bytes.size();
    checksum = checksum_of(preamble);
    BytesEncoder with_checksum;
    with_checksum.bytes(preamble);
    with_checksum.u64(checksum);
    preamble = with_checksum.take();
    // Otherwise the first reset may find its own seed in old bytes, and keep a secret that is not
    // there any more: the checksum would be wrong.
    XXH3_INITSTATE(&hash);
    begin_chunk();
  }

  std::uint64_t size() const { return preamble.size() + layout::chunked_bytes(payload_bytes); }

  void begin_chunk() { XXH3_64bits_reset_withSeed(&hash, checksum); }

  // Bytes of the payload from `at` on.
  void make(std::uint64_t at, std::span<std::byte> out) const {
    StretchEncoder to(at, out);
    filter.encode_payload(to);
    for (const Section& section : sections) to.bytes(section.bytes);
    if (!to.whole()) throw BadParameters("the filter changed while its snapshot was pulled");
  }

  // Fills `out` from the chunk at `offset` or from its checksum; returns how many bytes it was.
  std::size_t next_of_chunk(std::span<std::byte> out) {
    const std::uint64_t behind = offset - preamble.size();
    const std::uint64_t chunk = behind / layout::kChunkStride;
    const std::uint64_t within = behind % layout::kChunkStride;
    const std::uint64_t length =
        std::min(layout::kChunkBytes, payload_bytes - chunk * layout::kChunkBytes);
    if (within < length) {
      out = out.first(std::min<std::uint64_t>(out.size(), length - within));
      make(chunk * layout::kChunkBytes + within, out);
      XXH3_64bits_update(&hash, out.data(), out.size());
      return out.size();
    }
    BytesEncoder word;
    word.u64(XXH3_64bits_digest(&hash));
    const auto rest = word.written().subspan(within - length);
    out = out.first(std::min(out.size(), rest.size()));
    std::ranges::copy(rest.first(out.size()), out.begin());
    if (out.size() == rest.size()) {
      checksum = XXH3_64bits_digest(&hash);
      begin_chunk();
    }
    return out.size();
  }

  const AnyFilter& filter;
  const Sections& sections;
  std::uint64_t payload_bytes;      // sections included
  std::vector<std::byte> preamble;  // with its checksum
  std::uint64_t offset = 0;         // of the next byte
  std::uint64_t checksum;           // of the last whole chunk, or of the header
  XXH3_state_t hash;                // of the chunk that is being made
};

const Sections SnapshotPull::kNoSections;

SnapshotPull::SnapshotPull(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                           const Sections& sections)
    : state_(std::make_unique<State>(hasher, filter, labels, sections)) {}
SnapshotPull::SnapshotPull(SnapshotPull&&) noexcept = default;
SnapshotPull& SnapshotPull::operator=(SnapshotPull&&) noexcept = default;
SnapshotPull::~SnapshotPull() = default;

std::uint64_t SnapshotPull::size() const noexcept {
  return state_->size();
}

std::size_t SnapshotPull::next(std::span<std::byte> out) {
  State& state = *state_;
  const std::uint64_t size = state.size();
  std::size_t filled = 0;
  while (filled < out.size() && state.offset < size) {
    const std::span<std::byte> rest = out.subspan(filled);
    std::size_t count = 0;
    if (state.offset < state.preamble.size()) {
      const auto left = std::span(state.preamble).subspan(state.offset);
      count = std::min(rest.size(), left.size());
      std::ranges::copy(left.first(count), rest.begin());
    } else {
      count = state.next_of_chunk(rest);
    }
    state.offset += count;
    filled += count;
  }
  return filled;
}

SnapshotPull::Position SnapshotPull::position() const noexcept {
  return {state_->offset, state_->checksum};
}

void SnapshotPull::resume(const Position& position) {
  State& state = *state_;
  if (position.offset > state.size())
    throw BadParameters(
        fmt::format("there is no byte {} in a snapshot of {}: was the position "
                    "of another filter?",
                    position.offset, state.size()));
  state.offset = position.offset;
  state.checksum =
      position.offset <= state.preamble.size()
          ? checksum_of(
                std::span(state.preamble).first(state.preamble.size() - layout::kChecksumBytes))
          : position.checksum;
  state.begin_chunk();
  if (position.offset <= state.preamble.size()) return;
  // What was made of this chunk is made again for its checksum.
  const std::uint64_t behind = position.offset - state.preamble.size();
  const std::uint64_t chunk_at = behind / layout::kChunkStride * layout::kChunkBytes;
  const std::uint64_t made = std::min(
      behind % layout::kChunkStride,
      std::min(layout::kChunkBytes, state.payload_bytes - std::min(chunk_at, state.payload_bytes)));
  std::vector<std::byte> again(made);
  if (made != 0) state.make(chunk_at, again);
  XXH3_64bits_update(&state.hash, again.data(), again.size());
}

}  // namespace sluice
