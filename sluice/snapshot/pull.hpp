// A snapshot pulled out of a filter piece by piece: for hosts that send or save in small steps, and
// cannot wait until gigabytes are written.
//
//   SnapshotPull pull(hasher, filter);
//   reserve(pull.size());
//   while (const std::size_t count = pull.next(buffer)) send(buffer, count);
//
// Each call makes only the bytes that it is asked for; the filter is never copied. A position can
// be kept and resumed later, also by another SnapshotPull, as long as the filter has not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/snapshot/snapshot.hpp"

namespace sluice {

class SnapshotPull {
 public:
  struct Position {
    std::uint64_t offset = 0;    // of the next byte in the snapshot
    std::uint64_t checksum = 0;  // of the last complete chunk before it, or of the header
  };

  // `filter` and `sections` must outlive this, and must not change until it is done. Throws
  // BadParameters when labels or sections are more than a header holds.
  SnapshotPull(const Hasher& hasher, const AnyFilter& filter, const Labels& labels = {},
               const Sections& sections = kNoSections);
  SnapshotPull(SnapshotPull&&) noexcept;
  SnapshotPull& operator=(SnapshotPull&&) noexcept;
  ~SnapshotPull();

  // Size of the whole snapshot, in bytes.
  std::uint64_t size() const noexcept;
  // Fills `out` with the next bytes and returns how many; 0 at the end. A call costs one pass over
  // the filter's list of tables, plus the bytes themselves. 1 MiB is a good size for `out`.
  std::size_t next(std::span<std::byte> out);

  Position position() const noexcept;
  // Continues at a position of another pull of the same, unchanged filter. Throws BadParameters
  // when there is no such position.
  void resume(const Position& position);

 private:
  static const Sections kNoSections;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
