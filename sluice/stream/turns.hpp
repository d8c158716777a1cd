// Turns of several threads that carry chunks through one pipeline.
//
// A thread carries a chunk all the way. Three steps are done by one thread at a time, in the order
// of the input: reading, judging and writing. Between reading and judging, threads work in
// parallel. So chunks stay on the core that read them, and a thread waits only for its turn. Calls
// here are made a few times per chunk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>

namespace sluice {

class Turns {
 public:
  using Ticket = std::uint64_t;

  // Waits for the turn to read; empty if there is nothing more to do. A helper also waits until it
  // is called.
  std::optional<Ticket> begin_reading(bool helper);
  // The next thread may read.
  void end_reading();
  // A helper returns its turn to read unused, and waits for a call.
  void decline_reading();
  // The input has ended: threads that ask for a turn to read are told to stop.
  void finish();

  // Helpers are called, or told to wait.
  void call_helpers(bool call);

  // Waits until all before this ticket are judged; false when one of them failed.
  [[nodiscard]] bool begin_judging(Ticket ticket);
  void end_judging();

  // Waits until all before this ticket are written; false when one of them failed.
  [[nodiscard]] bool begin_writing(Ticket ticket);
  void end_writing();

  // The first failure ends the run: no more turns are given.
  void fail(std::exception_ptr failure) noexcept;
  // Throws the failure, if there was one.
  void rethrow() const;

  // Stop reading; what has been read is still judged.
  void stop();
  bool stopped() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool reading_ = false;
  bool helpers_called_ = false;
  bool finished_ = false;
  bool stopped_ = false;
  Ticket next_ = 0;     // of the next turn to read
  Ticket judged_ = 0;   // all before this are
  Ticket written_ = 0;  // and before this
  std::exception_ptr failure_;
};

}  // namespace sluice
