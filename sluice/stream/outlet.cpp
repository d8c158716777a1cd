#include "sluice/stream/outlet.hpp"

#include <utility>

namespace sluice {

Outlet::Outlet(ByteSink* sink, char terminator, bool open_end)
    : sink_(sink),
      terminator_(terminator),
      open_end_(open_end),
      buffer_(sink == nullptr ? nullptr : new char[kBufferBytes]) {}

void Outlet::write_run(std::string_view run, bool open_end) {
  if (sink_ == nullptr) return;
  if (open_end_) {
    open_end_ = false;
    write_run({&terminator_, 1}, false);
  }
  bytes_ += run.size();
  open_end_ = open_end;
  if (run.size() > kBufferBytes - filled_) {
    flush();
    if (run.size() >= kBufferBytes) {
      sink_->write(run);
      return;
    }
  }
  std::memcpy(buffer_.get() + filled_, run.data(), run.size());
  filled_ += run.size();
}

void Outlet::use_buffer(unsigned which) {
  if (sink_ == nullptr || which == using_) return;
  flush();
  if (other_ == nullptr) other_ = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  std::swap(buffer_, other_);
  using_ = which;
}

void Outlet::flush() {
  if (filled_ == 0) return;
  const std::size_t ready = filled_;
  filled_ = 0;
  sink_->write({buffer_.get(), ready});
}

}  // namespace sluice
