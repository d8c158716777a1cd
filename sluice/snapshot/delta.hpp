// What changed between two snapshots of one filter, as bytes, so that a site sends only what is
// new. Applied to the older snapshot it gives the newer one, byte for byte.
//
// Source   Guo et al., §4: the XOR against the last version sent, compressed.
// Differs  Any filter's payload, in chunks of 1 MiB, each in the coding that makes it smallest
//          (delta_coding.hpp); versions are identified by their final checksums, which tells a
//          delta against another version (a gap) from one that was applied before (a repeat).
//
// A delta against nothing is the whole snapshot, compressed. Every delta is versioned and
// checksummed (docs/format.md) and carries the snapshot's header, secret included: protect it like
// a state file.
//
// Making and applying a delta both stream: they hold a few chunks in memory, never a filter. Input
// bytes are treated as hostile, as in snapshot.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"

namespace sluice {

// Bytes with random access: a file, or memory.
class StoredBytes {
 public:
  virtual ~StoredBytes() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` with the bytes from `offset` on. Throws CorruptSnapshot when they are not there.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  virtual const std::string& name() const = 0;  // for messages
};

class BytesInMemory final : public StoredBytes {
 public:
  // `data` must outlive this.
  BytesInMemory(std::span<const std::byte> data, std::string name)
      : data_(data), name_(std::move(name)) {}
  std::uint64_t size() const override { return data_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> data_;
  std::string name_;
};

// The snapshot is not the one that the delta was made against.
class DeltaGap : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

// The snapshot is already what the delta leads to.
class DeltaRepeat : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

struct DeltaSizes {
  std::uint64_t old_bytes = 0;  // 0: against nothing
  std::uint64_t new_bytes = 0;
  std::uint64_t delta_bytes = 0;
};

// `old_one` may be null: then the delta is all of `new_one`. Throws BadParameters when they are not
// two versions of one filter (kind, hash, secret and labels must be equal; other header fields may
// differ by growth), and CorruptSnapshot, naming the input, when one of them is not a complete
// snapshot.
DeltaSizes write_delta(const StoredBytes* old_one, const StoredBytes& new_one, Encoder& to);

// Writes the snapshot that `delta` makes of `old_one` (null for a delta against nothing). The
// output is valid only when this returns. Throws DeltaGap, DeltaRepeat, BadParameters when
// `old_one` is missing or must be null, and CorruptSnapshot, naming the input, when one is damaged.
DeltaSizes apply_delta(const StoredBytes* old_one, const StoredBytes& delta, Encoder& to);

// Whether the bytes begin like a delta.
bool is_delta(const StoredBytes& bytes);

}  // namespace sluice
