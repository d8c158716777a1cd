// The writer: records in, few large writes out.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "sluice/stream/io.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

// Collects records for one sink, in order. A record without its terminator (the last of an input)
// is written without it, but gets one when another record follows, so that two never run together.
// The sink may be null: then records are discarded.
class Outlet {
 public:
  // `terminator` is what ends a record of this format: '\n' or '\0'. `sink` must outlive the
  // outlet. `open_end`: the sink ends with a record that has none.
  Outlet(ByteSink* sink, char terminator, bool open_end = false);

  void write(const Record& record) {
    write_run({record.data, record.whole}, record.body == record.whole);
  }

  // Several adjacent records at once; `open_end`: the last one has no terminator.
  void write_run(std::string_view run, bool open_end);

  // Copies records[i] if keep(i), without a branch per record; the records must be adjacent in one
  // buffer. Short ones are always copied, and only the position depends on keep(i). Records must be
  // readable kPaddingBytes past their end.
  template <class Keep>
  void write_kept(std::span<const Record> records, Keep keep);

  // Copies all of them, which are adjacent, at once.
  void write_all(std::span<const Record> records) {
    const Record& last = records.back();
    const char* const begin = records.front().data;
    write_run({begin, last.data + last.whole}, last.body == last.whole);
  }

  // Switches to the other of its two buffers: the one that this thread filled before and has in its
  // cache. The contents of the first are written.
  void use_buffer(unsigned which);

  // Hands everything collected to the sink.
  void flush();
  // Tells the sink, which was handed everything, that the input is idle.
  void flush_sink() {
    if (sink_ != nullptr) sink_->flush();
  }

  bool has_sink() const noexcept { return sink_ != nullptr; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  template <class Keep>
  std::size_t copy_short(std::span<const Record> records, std::size_t i, const Keep& keep);

  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  static constexpr std::size_t kShortBytes = kPaddingBytes;  // copied in one fixed step

  ByteSink* sink_;
  char terminator_;
  bool open_end_;
  std::uint64_t bytes_ = 0;  // handed over for writing, flushed or not
  std::size_t filled_ = 0;
  std::unique_ptr<char[]> buffer_;
  unsigned using_ = 0;
  std::unique_ptr<char[]> other_;  // made when it is first used
};

template <class Keep>
void Outlet::write_kept(std::span<const Record> records, Keep keep) {
  if (sink_ == nullptr || records.empty()) return;
  const Record& last = records.back();
  // The rare cases: a terminator missing from before, or now.
  if (open_end_ || last.body == last.whole) {
    for (std::size_t i = 0; i < records.size(); ++i)
      if (keep(i)) write(records[i]);
    return;
  }
  for (std::size_t i = 0; i < records.size();) {
    i = copy_short(records, i, keep);
    if (i == records.size()) return;
    // A long record, with the kept records right after it: they are adjacent.
    if (!keep(i)) {
      ++i;
      continue;
    }
    const char* const begin = records[i].data;
    while (++i < records.size() && keep(i)) {
    }
    write_run({begin, records[i - 1].data + records[i - 1].whole}, false);
  }
}

// Returns where it stopped: at a record that is not short, or when the buffer was full.
template <class Keep>
std::size_t Outlet::copy_short(std::span<const Record> records, std::size_t i, const Keep& keep) {
  // Not members: the compiler would have to assume that the copied bytes overlap them.
  char* to = buffer_.get() + filled_;
  char* const last = buffer_.get() + kBufferBytes - kShortBytes;
  for (; i < records.size(); ++i) {
    const std::size_t whole = records[i].whole;
    if (whole > kShortBytes || to > last) break;
    std::memcpy(to, records[i].data, kShortBytes);
    to += keep(i) ? whole : 0;
  }
  const auto filled = static_cast<std::size_t>(to - buffer_.get());
  bytes_ += filled - filled_;
  filled_ = filled;
  return i;
}

}  // namespace sluice
