// The stages of a window as bytes, and back.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/growth.hpp"

namespace sluice {
namespace {

// More stages than any stream leads to: each is for an eighth of what is live at least, so that 259
// lie between one key and 2^44, and a few are followed by smaller ones.
constexpr std::uint32_t kMostStages = 512;

}  // namespace

void Growth::encode_header(Encoder& to) const {
  to.varint(growths_);
  to.varint(generation_keys_);
  to.varint(successor_keys_);
  to.varint(afresh_ ? std::uint64_t{*afresh_} + 1 : 0);
  to.varint(stages_.size());
  for (const Stage& stage : stages_) {
    BytesEncoder fields;
    stage.filter.encode_header(fields);
    CountingEncoder payload;
    stage.filter.encode_payload(payload);
    to.u16(static_cast<std::uint16_t>(stage.filter.kind()));
    to.u16(stage.filter.version());
    to.varint(stage.written);
    to.varint(payload.count());
    to.varint(fields.written().size());
    to.bytes(fields.written());
  }
  // Only of those with a limit. What the list of stages takes counts, too: a copy must come to the limit with the
  // same key.
  const bool as_decoded = stages_.capacity() == std::bit_ceil(stages_.size());
  if (plan_.memory == 0 || (writable_ == kAnyNumber && forgotten_early_ == 0 && as_decoded)) return;
  to.varint(writable_ == kAnyNumber ? 0 : std::uint64_t{writable_} + 1);
  to.varint(forgotten_early_);
  to.varint(stages_.capacity());
}

void Growth::encode_payload(Encoder& to) const {
  for (const Stage& stage : stages_) stage.filter.encode_payload(to);
}

void Growth::decode(Decoder& header, Decoder& payload, unsigned generations) {
  const std::uint64_t growths = header.varint();
  if (growths > std::numeric_limits<std::uint32_t>::max())
    throw CorruptSnapshot("a window says that it has grown more often than windows do");
  growths_ = static_cast<std::uint32_t>(growths);
  generation_keys_ = header.varint();
  successor_keys_ = header.varint();
  const std::uint64_t owed = header.varint();
  const std::uint64_t count = header.varint();
  if (count == 0 || count > kMostStages)
    throw CorruptSnapshot(
        fmt::format("a window has {} stages: there should be 1 to {}", count, kMostStages));
  stages_ = Vector<Stage>(memory());
  ++changes_;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint16_t kind = header.u16();
    const std::uint16_t version = header.u16();
    const std::uint64_t written = header.varint();
    const std::uint64_t payload_bytes = header.varint();
    const std::uint64_t field_bytes = header.varint();
    if (payload_bytes > payload.remaining() || field_bytes > header.remaining())
      throw CorruptSnapshot(fmt::format("stage {} of the window is not there whole", i));
    PartDecoder fields(header, field_bytes);
    PartDecoder part(payload, payload_bytes);
    AnyFilter filter = decode_filter(kind, version, fields, part, memory(), generations);
    if (fields.remaining() != 0 || part.remaining() != 0 || !filter.ages() ||
        filter.generations() != generations ||
        (!stages_.empty() && filter.kind() != newest().kind()))
      throw CorruptSnapshot(fmt::format("stage {} of the window is none", i));
    stages_.push_back({std::move(filter), written});
  }
  count_older();
  if (payload.remaining() != 0) throw CorruptSnapshot("bytes follow the last stage of the window");
  if (successor_keys_ > newest().planned().capacity || owed > std::uint64_t{kMostOwed} + 1 ||
      (owed != 0 && (stages_.size() > 1 || live_keys() > 0 || successor_keys_ > 0)))
    throw CorruptSnapshot("the window asks for a stage that cannot follow those it has");
  if (owed != 0) afresh_ = static_cast<std::uint32_t>(owed - 1);
  if (header.remaining() == 0) return;
  const std::uint64_t writable = header.varint();
  forgotten_early_ = header.varint();
  const std::uint64_t listed = header.varint();
  if (plan_.memory == 0 || writable > kAnyNumber || listed < count || listed > 2 * kMostStages ||
      (writable == 0 && forgotten_early_ == 0 && listed == std::bit_ceil(count)))
    throw CorruptSnapshot("the window has an impossible number of keys that it may take");
  if (writable != 0) writable_ = static_cast<std::uint32_t>(writable - 1);
  Vector<Stage> room(memory());
  room.reserve(listed);
  std::ranges::move(stages_, std::back_inserter(room));
  stages_ = std::move(room);
}

}  // namespace sluice
