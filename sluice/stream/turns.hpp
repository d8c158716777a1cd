// Who may do what when several threads carry chunks through one pipeline.
//
// A thread takes a chunk all the way. Three stretches of that way are narrow and are passed one at
// a time, in the order of the input: reading, judging, and writing. What lies between the first two
// is wide. So chunks stay on the core that read them, and no thread waits but for a turn. Nothing
// here is asked more often than a few times a chunk.
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

  // Waits for the turn to read; nothing when there is nothing more to do. A helper also waits until
  // it is called.
  std::optional<Ticket> begin_reading(bool helper);
  // The next thread may read.
  void end_reading();
  // The turn to read was of no use to a helper: it goes back unused, and the helper waits for a
  // call.
  void decline_reading();
  // All that is read has been: whoever asks for a turn to read is told to go.
  void finish();

  // Helpers are called, or told to wait.
  void call_helpers(bool call);

  // Waits until all before this ticket are judged; false when one of them failed.
  [[nodiscard]] bool begin_judging(Ticket ticket);
  void end_judging();

  // Waits until all before this ticket are written; false when one of them failed.
  [[nodiscard]] bool begin_writing(Ticket ticket);
  void end_writing();

  // The first failure ends the run: nobody gets a turn any more.
  void fail(std::exception_ptr failure) noexcept;
  // Throws the failure, if there was one.
  void rethrow() const;

  // Nothing more shall be read; what is read is judged.
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
