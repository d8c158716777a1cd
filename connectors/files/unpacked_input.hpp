// The contents of a compressed file or pipe, unpacked on a thread of its own or in the reader's.
//
// The thread fills a few buffers ahead of the reader, which are used again and again. When a pipe
// brings nothing more for now, all that can be unpacked has been handed over.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "connectors/files/packing.hpp"
#include "sluice/base/error.hpp"

namespace sluice {

// Compressed bytes that cannot be unpacked. The message names the file, the member and the offset.
class BadPacked : public IoError {
 public:
  explicit BadPacked(const std::string& what, bool cut_off = false)
      : IoError(what, 0), cut_off_(cut_off) {}
  // Nothing is wrong but that there is no more.
  bool cut_off() const noexcept { return cut_off_; }

 private:
  bool cut_off_;
};

// What the windows of zstd may take of a budget for the whole process.
struct WindowBudget {
  std::uint64_t most_window = kMostWindow;
  // What to do if a frame needs this window, which is larger: "give ... or more". Any thread may ask.
  std::function<std::string(std::uint64_t window)> advice = {};
};

struct UnpackOptions {
  bool own_thread = true;
  // None: any window up to kMostWindow. It is read when unpacking starts, and may change before.
  std::shared_ptr<WindowBudget> budget = {};
  std::size_t buffer_bytes = std::size_t{1} << 18;  // of each of the buffers: what is read at once
};

// Where the compressed bytes come from. The descriptor stays its owner's.
struct PackedBytes {
  int descriptor = -1;
  bool regular = false;
  std::uint64_t offset = 0;  // of a regular file: where its first member begins
  int wake = -1;             // becomes readable when the run should stop
  std::string name = {};     // for messages: a path, or "standard input"
  std::string first = {};    // bytes that were read already; not of a regular file
};

class UnpackedInput {
 public:
  UnpackedInput(PackedBytes from, Packing packing, const UnpackOptions& options);
  ~UnpackedInput();
  UnpackedInput(const UnpackedInput&) = delete;
  UnpackedInput& operator=(const UnpackedInput&) = delete;

  Packing packing() const noexcept { return packing_; }

  // As in ByteSource. read throws BadPacked and IoError.
  std::size_t read(std::span<char> into);
  bool would_wait();
  bool wait(int milliseconds);

  // Of a regular file: the next read gives the byte at this offset of the contents. What is before it
  // is unpacked again. If the run is told to stop meanwhile, nothing more can be read.
  void seek(std::uint64_t offset);

  // Of a regular file: an offset in the compressed file such that the bytes before it were read for the
  // first `unpacked` bytes of its contents. It is the file's end if and only if these are all.
  // 0 if nothing was read. Any thread may ask.
  std::uint64_t packed_end(std::uint64_t unpacked) const noexcept;

 private:
  enum class Got : std::uint8_t { bytes, later, end, stop };
  struct Filled {
    std::size_t made;
    Got how;
  };
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t filled = 0;
  };

  void start();
  void release() noexcept;
  void stop_thread() noexcept;
  void work() noexcept;
  Got more(bool wait);
  Filled fill(std::span<char> out, bool wait);
  std::size_t read_here(std::span<char> into);
  bool decode_ahead(int milliseconds);
  std::exception_ptr failure(const PackingFault& fault) const;
  std::exception_ptr cut_off() const;
  std::string at() const;
  std::uint64_t most_window() const noexcept;

  const PackedBytes from_;
  const Packing packing_;
  const UnpackOptions options_;

  // Used by the one that unpacks: the thread, or the reader if there is none.
  std::unique_ptr<Unpacker> unpacker_;
  std::unique_ptr<char[]> packed_;
  std::span<const char> input_;  // in packed_: read and not yet used
  std::uint64_t offset_ = 0;     // in the file: of what is read next
  bool full_ = false;            // the last output was filled: more may follow without input
  std::exception_ptr fault_;     // after what was made before
  std::uint64_t made_ = 0;       // bytes of contents

  std::atomic<std::uint64_t> used_ = 0;      // compressed bytes
  std::atomic<std::uint64_t> contents_ = 0;  // in all, when the end was reached
  std::atomic<bool> ended_ = false;

  // Between the two. The reader owns ring_[head_] while queued_ > 0; the thread fills the one after
  // those that are queued.
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Buffer, 4> ring_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;
  bool idle_ = false;  // waits for its input
  bool over_ = false;  // nothing more comes
  bool quit_ = false;
  int quit_descriptor_ = -1;
  std::exception_ptr failed_;

  // Used by the reader.
  bool started_ = false;
  bool done_ = false;      // there is nothing more to read
  std::size_t taken_ = 0;  // of ring_[head_]
};

}  // namespace sluice
