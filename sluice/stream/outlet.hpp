// The writer: records in, few large writes out.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "sluice/stream/io.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

// Collects records for one sink, in order. A record that came without its terminator (the last of
// an input) is written so, but gets one when another record follows, so that two never run
// together. The sink may be missing: then records are counted by nobody and go nowhere.
class Outlet {
 public:
  // `terminator` is what ends a record of this format: '\n' or '\0'. `sink` must outlive the
  // outlet.
  Outlet(ByteSink* sink, char terminator);

  void write(const Record& record) {
    write_run({record.data, record.whole}, record.body == record.whole);
  }

  // Several adjacent records at once; `open_end`: the last one has no terminator.
  void write_run(std::string_view run, bool open_end);

  // Copies records[i] where keep[i], without a branch a record: short ones are copied whether kept
  // or not, and only the position depends on it. Records must be readable kPaddingBytes past their
  // end.
  template <class Keep>
  void write_kept(std::span<const Record> records, Keep keep);

  // Hands everything collected to the sink.
  void flush();

  bool has_sink() const noexcept { return sink_ != nullptr; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  static constexpr std::size_t kShortBytes = kPaddingBytes;  // copied in one fixed step

  ByteSink* sink_;
  char terminator_;
  bool open_end_ = false;
  std::uint64_t bytes_ = 0;  // handed over for writing, flushed or not
  std::size_t filled_ = 0;
  std::unique_ptr<char[]> buffer_;
};

template <class Keep>
void Outlet::write_kept(std::span<const Record> records, Keep keep) {
  if (sink_ == nullptr || records.empty()) return;
  const Record& last = records.back();
  // The rare cases: a terminator owed from before, or one missing now.
  if (open_end_ || last.body == last.whole) {
    for (std::size_t i = 0; i < records.size(); ++i)
      if (keep(i)) write(records[i]);
    return;
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.whole > kShortBytes || filled_ + kShortBytes > kBufferBytes) {
      if (keep(i)) write(record);
      continue;
    }
    std::memcpy(buffer_.get() + filled_, record.data, kShortBytes);
    const std::size_t kept = keep(i) ? record.whole : 0;
    filled_ += kept;
    bytes_ += kept;
  }
}

}  // namespace sluice
