#include "connectors/files/unpacked_input.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "sluice/base/quantity.hpp"
#include "sluice/base/signals.hpp"

namespace sluice {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{1} << 17;

std::string quoted(const std::string& name) {
  return name == "standard input" ? name : "'" + name + "'";
}

std::string file_or(const std::string& name) {
  return name == "standard input" ? "FILE" : "'" + name + "'";
}

}  // namespace

UnpackedInput::UnpackedInput(PackedBytes from, Packing packing, const UnpackOptions& options)
    : from_(std::move(from)), packing_(packing), options_(options), offset_(from_.offset) {}

UnpackedInput::~UnpackedInput() {
  release();
}

void UnpackedInput::start() {
  if (std::exchange(started_, true)) return;
  unpacker_ = Unpacker::make(packing_, most_window());
  packed_ = std::make_unique_for_overwrite<char[]>(kPackedBytes);
  offset_ = from_.offset;
  input_ = {};
  if (!from_.first.empty()) {
    std::memcpy(packed_.get(), from_.first.data(), from_.first.size());
    input_ = {packed_.get(), from_.first.size()};
  }
  if (!options_.own_thread) {
    ring_[0].bytes = std::make_unique_for_overwrite<char[]>(options_.buffer_bytes);
    return;
  }
  for (Buffer& buffer : ring_)
    buffer.bytes = std::make_unique_for_overwrite<char[]>(options_.buffer_bytes);
  quit_descriptor_ = ::eventfd(0, EFD_CLOEXEC);
  if (quit_descriptor_ < 0) throw IoError("cannot unpack " + quoted(from_.name), errno);
  const SignalsBlocked blocked;  // they are the caller's
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // There may be no more threads. The reader unpacks.
  }
}

void UnpackedInput::stop_thread() noexcept {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(quit_descriptor_, &one, sizeof one);
    thread_.join();
  }
  if (quit_descriptor_ >= 0) ::close(std::exchange(quit_descriptor_, -1));
}

// An input that was read to its end may have thousands after it.
void UnpackedInput::release() noexcept {
  stop_thread();
  unpacker_.reset();
  packed_.reset();
  for (Buffer& buffer : ring_) buffer = {};
}

// The thread.
void UnpackedInput::work() noexcept {
  try {
    for (;;) {
      Buffer* to = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return quit_ || queued_ < ring_.size(); });
        if (quit_) return;
        to = &ring_[(head_ + queued_) % ring_.size()];
      }
      const Filled filled = fill({to->bytes.get(), options_.buffer_bytes}, false);
      if (filled.made == 0 && filled.how == Got::later) {
        {
          const std::lock_guard lock(mutex_);
          idle_ = true;
        }
        changed_.notify_all();
        const Got got = more(true);
        const std::lock_guard lock(mutex_);
        idle_ = false;
        over_ = got == Got::stop;
      } else {
        const std::lock_guard lock(mutex_);
        to->filled = filled.made;
        if (filled.made > 0)
          ++queued_;
        else
          over_ = true;
      }
      changed_.notify_all();
      if (over_) return;  // nobody else sets it
    }
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      failed_ = std::current_exception();
      over_ = true;
    }
    changed_.notify_all();
  }
}

// Reads compressed bytes, all of which were used before.
UnpackedInput::Got UnpackedInput::more(bool wait) {
  for (;;) {
    if (!from_.regular) {
      pollfd waiting[3] = {
          {from_.descriptor, POLLIN, 0}, {from_.wake, POLLIN, 0}, {quit_descriptor_, POLLIN, 0}};
      if (::poll(waiting, 3, wait ? -1 : 0) < 0 && errno != EINTR)
        throw IoError("cannot wait for input '" + from_.name + "'", errno);
      if (waiting[1].revents != 0 || waiting[2].revents != 0) return Got::stop;
      if (waiting[0].revents == 0) {
        if (wait) continue;
        return Got::later;
      }
    }
    const ssize_t got = from_.regular ? ::pread(from_.descriptor, packed_.get(), kPackedBytes,
                                                static_cast<off_t>(offset_))
                                      : ::read(from_.descriptor, packed_.get(), kPackedBytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) throw IoError("cannot read input '" + from_.name + "'", errno);
    if (got == 0) return Got::end;
    offset_ += static_cast<std::uint64_t>(got);
    input_ = {packed_.get(), static_cast<std::size_t>(got)};
    return Got::bytes;
  }
}

// Unpacks until `out` is full, or until there is nothing more to unpack for now: then it waits only if it
// has made nothing, and `wait`.
UnpackedInput::Filled UnpackedInput::fill(std::span<char> out, bool wait) {
  std::size_t made = 0;
  while (!fault_) {
    if (!input_.empty() || full_) {
      Unpacker::Step step = unpacker_->unpack(input_, out.subspan(made));
      input_ = input_.subspan(step.used);
      used_.fetch_add(step.used, std::memory_order_relaxed);
      made += step.made;
      made_ += step.made;
      full_ = made == out.size();
      if (step.fault)
        fault_ = failure(*step.fault);
      else if (full_)
        return {made, Got::bytes};
      if (!input_.empty()) continue;
    }
    if (fault_) break;
    const Got got = more(wait && made == 0);
    if (got == Got::bytes) continue;
    if (made > 0) return {made, Got::bytes};
    if (got != Got::end) return {0, got};
    if (unpacker_->between()) {
      contents_ = made_;
      ended_ = true;
      return {0, Got::end};
    }
    fault_ = cut_off();
  }
  if (made > 0) return {made, Got::bytes};
  std::rethrow_exception(fault_);
}

std::size_t UnpackedInput::read(std::span<char> into) {
  if (done_) {
    if (failed_) std::rethrow_exception(failed_);
    return 0;
  }
  start();
  if (!thread_.joinable()) return read_here(into);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queued_ > 0 || over_; });
    if (queued_ == 0) {
      lock.unlock();
      done_ = true;
      release();
      if (failed_) std::rethrow_exception(failed_);
      return 0;
    }
  }
  const Buffer& from = ring_[head_];
  const std::size_t count = std::min(into.size(), from.filled - taken_);
  std::memcpy(into.data(), from.bytes.get() + taken_, count);
  taken_ += count;
  if (taken_ < from.filled) return count;
  taken_ = 0;
  {
    const std::lock_guard lock(mutex_);
    head_ = (head_ + 1) % ring_.size();
    --queued_;
  }
  changed_.notify_all();
  return count;
}

// Without a thread. What would_wait has unpacked ahead is in ring_[0].
std::size_t UnpackedInput::read_here(std::span<char> into) {
  Buffer& ahead = ring_[0];
  if (taken_ < ahead.filled) {
    const std::size_t count = std::min(into.size(), ahead.filled - taken_);
    std::memcpy(into.data(), ahead.bytes.get() + taken_, count);
    taken_ += count;
    return count;
  }
  try {
    const Filled filled = fill(into, true);
    if (filled.made > 0) return filled.made;
  } catch (...) {
    failed_ = std::current_exception();
  }
  done_ = true;
  release();
  if (failed_) std::rethrow_exception(failed_);
  return 0;
}

bool UnpackedInput::would_wait() {
  if (from_.regular || done_) return false;
  start();
  if (!thread_.joinable()) return !decode_ahead(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queued_ > 0 || over_ || idle_; });
  return queued_ == 0 && !over_;
}

bool UnpackedInput::wait(int milliseconds) {
  if (from_.regular || done_) return true;
  start();
  if (!thread_.joinable()) return decode_ahead(milliseconds);
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                           [this] { return queued_ > 0 || over_; });
}

// Without a thread: whether a read would not wait. What is needed to know that is unpacked.
bool UnpackedInput::decode_ahead(int milliseconds) {
  Buffer& ahead = ring_[0];
  if (taken_ < ahead.filled || fault_) return true;
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    ahead.filled = taken_ = 0;
    try {
      const Filled filled = fill({ahead.bytes.get(), options_.buffer_bytes}, false);
      ahead.filled = filled.made;
      if (filled.made > 0 || filled.how != Got::later) return true;
    } catch (...) {
      return true;  // it is for the read to say
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting[2] = {{from_.descriptor, POLLIN, 0}, {from_.wake, POLLIN, 0}};
    // A signal may be for the caller, so return to it.
    if (::poll(waiting, 2, static_cast<int>(left)) <= 0) return false;
  }
}

void UnpackedInput::seek(std::uint64_t offset) {
  release();
  started_ = done_ = quit_ = over_ = idle_ = full_ = false;
  failed_ = fault_ = nullptr;
  head_ = queued_ = taken_ = 0;
  made_ = 0;
  used_ = contents_ = 0;
  ended_ = false;
  if (offset == 0) return;
  const auto unread = std::make_unique_for_overwrite<char[]>(options_.buffer_bytes);
  while (offset > 0) {
    const std::size_t got =
        read({unread.get(),
              static_cast<std::size_t>(std::min<std::uint64_t>(offset, options_.buffer_bytes))});
    if (got == 0)
      throw BadPacked(fmt::format("{} has other contents than when it was read: fewer bytes by {}",
                                  quoted(from_.name), format_count(offset)));
    offset -= got;
    pollfd woken{from_.wake, POLLIN, 0};
    if (offset > 0 && from_.wake >= 0 && ::poll(&woken, 1, 0) > 0) {
      done_ = true;
      return release();
    }
  }
}

std::uint64_t UnpackedInput::packed_end(std::uint64_t unpacked) const noexcept {
  if (ended_ && contents_ == unpacked) return from_.offset + used_;
  // The last byte is not counted before the contents are read to their end.
  const std::uint64_t used = used_;
  return unpacked == 0 || used == 0 ? 0 : from_.offset + used - 1;
}

std::string UnpackedInput::at() const {
  return fmt::format("{} {}, near compressed byte {}", part_of(packing_),
                     format_count(std::max<std::uint64_t>(unpacker_->member(), 1)),
                     format_count(from_.offset + used_));
}

std::uint64_t UnpackedInput::most_window() const noexcept {
  return options_.budget ? options_.budget->most_window : kMostWindow;
}

std::exception_ptr UnpackedInput::failure(const PackingFault& fault) const {
  const std::string file = quoted(from_.name);
  // A window that no budget has room for is refused with the limit of all.
  const bool within_budget = options_.budget && fault.window <= kMostWindow;
  const auto bad = [](const std::string& what) { return std::make_exception_ptr(BadPacked(what)); };
  switch (fault.kind) {
    case PackingFault::Kind::damaged:
      break;
    case PackingFault::Kind::garbage:
      return bad(fmt::format(
          "{}: after {} {}, at compressed byte {}, comes something that is not {}. The records "
          "before it were read. If it does not matter, unpack the file on the way, as in {} {} | "
          "sluice ...",
          file, part_of(packing_),
          format_count(packing_ == Packing::gzip ? unpacker_->member() : unpacker_->member() - 1),
          format_count(from_.offset + used_),
          packing_ == Packing::gzip ? "a gzip member or zeros" : "a zstd frame",
          command_of(packing_), file_or(from_.name)));
    case PackingFault::Kind::dictionary:
      return bad(fmt::format(
          "{} needs a dictionary ({}): unpack it on the way, as in zstd -dc -D DICTIONARY {} | "
          "sluice ...",
          file, at(), file_or(from_.name)));
    case PackingFault::Kind::window:
      return bad(fmt::format(
          "{} needs a zstd window{} ({}), more than {}: {}unpack it on the way, as in zstd -dc "
          "-M2048MB {} | sluice ...",
          file, fault.window > 0 ? " of " + format_size(fault.window) : "", at(),
          within_budget ? "the " + format_size(most_window()) + " that `memory` has room for"
                        : format_size(kMostWindow),
          within_budget && options_.budget->advice ? options_.budget->advice(fault.window) + ", or "
                                                   : "",
          file_or(from_.name)));
  }
  return bad(
      fmt::format("{} is damaged ({}): {}. The records before that were read; get an undamaged "
                  "copy of the file",
                  file, at(), fault.detail));
}

std::exception_ptr UnpackedInput::cut_off() const {
  return std::make_exception_ptr(BadPacked(
      fmt::format("{} is cut off: {} {} has no end where the {} ends, at compressed byte {}. The "
                  "records before "
                  "that were read; copy it again, or wait until it is complete",
                  quoted(from_.name), part_of(packing_), format_count(unpacker_->member()),
                  from_.regular ? "file" : "input", format_count(from_.offset + used_)),
      true));
}

}  // namespace sluice
