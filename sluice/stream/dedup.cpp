#include "sluice/stream/dedup.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/signals.hpp"
#include "sluice/stream/chunk.hpp"
#include "sluice/stream/chunk_judge.hpp"
#include "sluice/stream/chunk_writer.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/turns.hpp"

namespace sluice {
namespace {

// After this many reads in a row that did not wait, a second thread is worth starting: that is a
// millisecond or two, compared with which starting it costs nothing.
constexpr unsigned kSteadyReads = 4;

bool asks_for_digests(const DedupOptions& options, const StreamJudge& judge) {
  return options.tap || judge.asks_for_digests();
}

}  // namespace

struct Dedup::Parts {
  // Data of one thread.
  struct Worker {
    unsigned number;
    Chunk chunk;
    ChunkKeys keys;
  };

  Parts(const DedupOptions& options, std::unique_ptr<StreamJudge> of_caller, StreamJudge& by,
        ByteSink& passed, ByteSink* held, ByteSink* late)
      : adapter(std::move(of_caller)),
        own{.number = 0,
            .chunk = {},
            .keys = {options, by.hasher(), asks_for_digests(options, by)}},
        reader(options),
        check_header(options.check_header),
        judge(options, by),
        writer(options, judge.inference(), passed, held, late) {
    // Without digests there is too little to do for two.
    if (options.threads > 1 && asks_for_digests(options, by))
      helper.emplace(Worker{.number = 1, .chunk = {}, .keys = {options, by.hasher(), true}});
  }

  std::unique_ptr<StreamJudge> adapter;  // or null
  Worker own;
  std::optional<Worker> helper;
  ChunkReader reader;
  std::function<void(const std::string& source, const std::string& header)> check_header;
  ChunkJudge judge;
  ChunkWriter writer;
  std::optional<std::string> header;  // of the first source that has one
  Passage* passage = nullptr;         // that is under way
  bool at_end = false;                // the last source was read to its end
};

// One source's path through.
class Dedup::Passage {
 public:
  Passage(Parts& parts, const std::function<bool()>& between) : parts_(parts), between_(between) {
    parts_.passage = this;
  }
  ~Passage() { parts_.passage = nullptr; }

  bool run() {
    work(parts_.own, false);
    if (helper_.joinable()) helper_.join();
    turns_.rethrow();
    if (turns_.stopped()) parts_.judge.counts().unfinished_bytes = parts_.reader.held();
    return at_end_ && !turns_.stopped();
  }

  void read_header() {
    Chunk& chunk = parts_.own.chunk;
    chunk.clear();
    while (chunk.records.empty() && !chunk.too_long) {
      at_end_ = parts_.reader.read(chunk) == 0;
      cut(chunk);
      if (at_end_) break;
    }
    chunk.bytes_read = 0;  // they are counted when they are judged
    // What follows the header is read again, and a record that is too long is found then.
    if (!chunk.records.empty()) {
      chunk.records.resize(1);
      chunk.too_long = false;
    }
    parts_.judge.judge(chunk);
    parts_.writer.write(chunk, parts_.own.number);
  }

  // Writes all that is judged to the sinks. Only for the thread that has the turn to judge.
  void flush() {
    settle();
    parts_.writer.flush();
  }

 private:
  using Worker = Parts::Worker;

  void work(Worker& worker, bool helper) noexcept {
    try {
      while (const auto ticket = turns_.begin_reading(helper)) carry(worker, *ticket, helper);
    } catch (...) {
      turns_.fail(std::current_exception());
    }
  }

  enum class Filled { chunk, chunk_alone, nothing };

  // One chunk's way. `alone`: we keep the turn to read until all is done.
  void carry(Worker& worker, Turns::Ticket ticket, bool helper) {
    Chunk& chunk = worker.chunk;
    chunk.clear();
    const Filled filled = fill(chunk, ticket, helper);
    if (filled == Filled::nothing) return;
    const bool alone = filled == Filled::chunk_alone;
    const bool last = at_end_;
    cut(chunk);
    const bool keep_reading_turn = alone || chunk.error || chunk.too_long;
    if (!keep_reading_turn) turns_.end_reading();
    prepare(worker);
    if (!alone && !begin_judging(ticket)) return;
    parts_.judge.judge(chunk);
    unwritten_ = &worker;
    if (chunk.error || parts_.judge.writes_alone()) settle();
    // At the end the caller has been asked before.
    if (!last && !go_on()) turns_.stop();
    const bool written = std::exchange(unwritten_, nullptr) == nullptr;
    turns_.end_judging();
    if (!written) write(worker, ticket);
    if (keep_reading_turn) turns_.end_reading();
  }

  bool begin_judging(Turns::Ticket ticket) {
    if (!turns_.begin_judging(ticket)) return false;
    judging_ = ticket;
    return true;
  }

  void write(const Worker& worker, Turns::Ticket ticket) {
    if (!turns_.begin_writing(ticket)) return;
    parts_.writer.write(worker.chunk, worker.number);
    turns_.end_writing();
  }

  // All that is judged is written when it returns. Only for the thread that has the turn to judge.
  // Throws what failed, also for the other thread: nothing may be kept of what was not written.
  void settle() {
    if (const Worker* const ours = std::exchange(unwritten_, nullptr))
      write(*ours, judging_);
    else
      static_cast<void>(turns_.begin_writing(judging_));
    turns_.rethrow();
  }

  // Asks the caller. Only for the thread that has the turn to judge. If the caller throws, the run
  // ends, after all that is judged is written.
  bool go_on() {
    try {
      return between_();
    } catch (...) {
      settle();
      throw;
    }
  }

  // Reads, where there is need to. All that goes wrong is for the judge to say, in its turn.
  Filled fill(Chunk& chunk, Turns::Ticket ticket, bool helper) {
    ChunkReader& reader = parts_.reader;
    if (reader.has_records()) return Filled::chunk;
    if (at_end_ || turns_.stopped()) return finish();
    if (reader.is_too_long()) {
      chunk.too_long = true;
      return Filled::chunk;
    }
    bool alone = false;
    if (reader.source().would_wait()) {
      if (helper) {
        turns_.decline_reading();
        return Filled::nothing;
      }
      turns_.call_helpers(false);
      steady_reads_ = 0;
      if (!begin_judging(ticket)) return Filled::nothing;
      alone = true;
      if (!idle()) return stop();
    } else if (!helper && ++steady_reads_ >= kSteadyReads) {
      call_helper();
    }
    std::size_t got = 0;
    try {
      got = reader.read(chunk);
    } catch (...) {
      chunk.error = std::current_exception();
      return alone ? Filled::chunk_alone : Filled::chunk;
    }
    if (got == 0) {
      // A source also ends when it is told to stop. Then the tail is half a record, not the last
      // one.
      if (!alone && !begin_judging(ticket)) return Filled::nothing;
      alone = true;
      if (!go_on()) return stop();
      at_end_ = true;
    }
    return alone ? Filled::chunk_alone : Filled::chunk;
  }

  Filled stop() {
    turns_.stop();
    return finish();
  }

  Filled finish() {
    turns_.finish();
    return Filled::nothing;
  }

  // Nothing to read: what is judged goes out, and the caller is asked now and then. False: it says
  // stop.
  bool idle() {
    settle();
    do {
      parts_.writer.flush_sinks();
      if (!go_on()) return false;
    } while (!parts_.reader.source().wait());
    return true;
  }

  void cut(Chunk& chunk) {
    if (chunk.error || chunk.too_long) return;
    try {
      parts_.reader.cut(chunk, at_end_);
      if (chunk.header != Chunk::Header::none) take_header(chunk);
    } catch (...) {
      chunk.records.clear();
      chunk.header = Chunk::Header::none;
      chunk.error = std::current_exception();
    }
  }

  // The first source's header goes to every outlet; the others' must be equal to it and are
  // dropped.
  void take_header(Chunk& chunk) {
    const Record& header = chunk.records.front();
    const std::string& source = parts_.reader.source().name();
    if (!parts_.header) {
      parts_.header = without_mark(header.text());
      if (parts_.check_header) parts_.check_header(source, *parts_.header);
      // No keys were extracted before there was a header, so the helper's ChunkKeys are not in use.
      parts_.own.keys.set_header(header, source);
      if (parts_.helper) parts_.helper->keys.set_header(header, source);
      chunk.header = Chunk::Header::first;
    } else if (without_mark(header.text()) != parts_.header) {
      throw BadRecord(
          fmt::format("{}: its header '{}' differs from the first input's '{}': give inputs with "
                      "the same columns, or `no_header` if these are data",
                      source, without_mark(header.text()), *parts_.header));
    }
  }

  void prepare(Worker& worker) {
    try {
      worker.keys.prepare(worker.chunk);
    } catch (...) {
      worker.chunk.error = std::current_exception();
    }
  }

  void call_helper() {
    if (!parts_.helper) return;
    turns_.call_helpers(true);
    if (helper_.joinable()) return;
    const SignalsBlocked blocked;  // they are the caller's
    try {
      helper_ = std::thread([this] { work(*parts_.helper, true); });
    } catch (const std::exception&) {
      // There may be no more threads, or no memory for one. We do without.
    }
  }

  Parts& parts_;
  const std::function<bool()>& between_;
  Turns turns_;
  std::thread helper_;
  // Used by the thread that has the turn to read.
  bool at_end_ = false;
  unsigned steady_reads_ = 0;  // the caller's in a row that did not wait
  // Used by the thread that has the turn to judge.
  Turns::Ticket judging_ = 0;
  const Worker* unwritten_ = nullptr;  // has judged its chunk
};

Dedup::Dedup(const DedupOptions& options, Judge& judge, ByteSink& passed, ByteSink* held,
             ByteSink* late)
    : parts_([&] {
        auto adapter = std::make_unique<OwnJudge>(judge);
        StreamJudge& by = *adapter;
        return std::make_unique<Parts>(options, std::move(adapter), by, passed, held, late);
      }()) {}

Dedup::Dedup(const DedupOptions& options, StreamJudge& judge, ByteSink& passed, ByteSink* held,
             ByteSink* late)
    : parts_(std::make_unique<Parts>(options, nullptr, judge, passed, held, late)) {}

Dedup::~Dedup() = default;

bool Dedup::run(ByteSource& source, const std::function<bool()>& between,
                const SourcePosition& from) {
  parts_->reader.start(source, from.offset);
  parts_->judge.start(source.name(), from);
  parts_->at_end = false;
  return parts_->at_end = Passage(*parts_, between).run();
}

void Dedup::read_header(ByteSource& source) {
  if (!parts_->reader.expects_header()) return;
  parts_->reader.start(source, 0);
  parts_->judge.start(source.name(), {});
  Passage(*parts_, nullptr).read_header();
}

const SourcePosition& Dedup::position() const noexcept {
  return parts_->judge.position();
}

void Dedup::flush() {
  if (parts_->passage != nullptr) return parts_->passage->flush();
  if (parts_->at_end && parts_->writer.has_header()) {
    parts_->judge.begin();
    parts_->writer.write_header();
  }
  parts_->writer.flush();
}

void Dedup::flush_sinks() {
  parts_->writer.flush_sinks();
}

const std::string* Dedup::written_header() const noexcept {
  return parts_->writer.wrote_header() ? &*parts_->header : nullptr;
}

std::optional<EventClock> Dedup::years() const {
  return parts_->judge.years();
}

const DedupCounts& Dedup::counts() const noexcept {
  return parts_->judge.counts();
}

const std::vector<RecordFault>& Dedup::faults() const noexcept {
  return parts_->judge.faults();
}

const std::optional<OpenQuotes>& Dedup::open_quotes() const noexcept {
  return parts_->judge.open_quotes();
}

std::uint64_t Dedup::bytes_out() const noexcept {
  return parts_->writer.bytes_out();
}

std::size_t Dedup::key_parts() const {
  return parts_->own.keys.parts();
}

const RecordInference* Dedup::inference() const noexcept {
  return parts_->judge.inference();
}

}  // namespace sluice
