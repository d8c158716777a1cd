// The pipeline's interfaces for input and output. connectors/ implement them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at least one byte, or returns 0: nothing follows (the end, or a request to stop). Throws
  // IoError.
  virtual std::size_t read(std::span<char> into) = 0;
  // True if a read would wait: then it is time to flush what is judged.
  virtual bool would_wait() { return false; }
  // Waits until a read would not wait, for at most about a second; false: that time ran out.
  virtual bool wait() { return true; }
  // For messages: a file's path, or "standard input".
  virtual const std::string& name() const = 0;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of `bytes`, or throws IoError.
  virtual void write(std::string_view bytes) = 0;
  // The input is idle: a sink that keeps bytes back should let its reader see them, and may do so later:
  // it is asked again while the input is idle.
  virtual void flush() {}
};

}  // namespace sluice
