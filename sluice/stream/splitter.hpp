// Bytes to records: one splitter per format.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/stream/record.hpp"

namespace sluice {

// Cuts bytes into records.
class Splitter {
 public:
  virtual ~Splitter() = default;
  // `bytes` start at a record's start. Appends at most `most` records to `out` and returns how many
  // bytes they take; the rest is an unfinished record, or left because of `most`, and is presented
  // again, at its front and perhaps elsewhere in memory, with more bytes behind it. The splitter
  // remembers how much of an unfinished record it has seen, so that a long one is not scanned
  // twice. `last`: nothing follows, so what is left is a record even without its terminator.
  virtual std::size_t split(std::string_view bytes, bool last, std::size_t most,
                            std::vector<Record>& out) = 0;
  // Forgets any unfinished record: a new input begins, at its front or at a later record.
  virtual void reset(bool at_front) = 0;
  // Whether the last record ended within quotes, because nothing followed.
  virtual bool ended_quoted() const noexcept { return false; }
};

std::unique_ptr<Splitter> make_splitter(const Format& format);

}  // namespace sluice
