#include "sluice/stream/outlet.hpp"

namespace sluice {

Outlet::Outlet(ByteSink* sink, char terminator)
    : sink_(sink),
      terminator_(terminator),
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

void Outlet::flush() {
  if (filled_ == 0) return;
  const std::size_t ready = filled_;
  filled_ = 0;
  sink_->write({buffer_.get(), ready});
}

}  // namespace sluice
