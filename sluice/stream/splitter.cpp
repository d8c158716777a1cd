// Both splitters look only at the places of a few bytes, which the scan kernel finds; between calls
// they keep what they know of an unfinished record, in offsets from its start.
#include <algorithm>
#include <array>
#include <cassert>

#include "sluice/kernels/scan.hpp"
#include "sluice/stream/csv.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice {
namespace {

// Positions asked of the kernel at a time. Every record takes at least one, so that with `most` as
// the other bound nothing is scanned that this call cannot use.
constexpr std::size_t kScanPositions = kBatchRecords;
using Positions = std::array<std::uint32_t, kScanPositions + kScanSlack>;

class LineSplitter final : public Splitter {
 public:
  explicit LineSplitter(char terminator) : terminator_(terminator) {}

  std::size_t split(std::string_view bytes, bool last, std::size_t most,
                    std::vector<Record>& out) override {
    assert(seen_ <= bytes.size());
    std::size_t start = 0;
    std::size_t scanned = seen_;
    while (most > 0 && scanned < bytes.size()) {
      const std::size_t base = scanned;
      const Scan scan =
          find_all(bytes.data() + base, bytes.size() - base, {terminator_, terminator_},
                   std::min(most, kScanPositions), positions_.data());
      out.resize(out.size() + scan.found);
      Record* to = out.data() + out.size() - scan.found;
      for (std::size_t i = 0; i < scan.found; ++i) {
        const std::size_t end = base + positions_[i];
        to[i] = {bytes.data() + start, end - start, end - start + 1};
        start = end + 1;
      }
      most -= scan.found;
      scanned += scan.scanned;
    }
    if (last && most > 0 && start < bytes.size()) {
      out.push_back({bytes.data() + start, bytes.size() - start, bytes.size() - start});
      start = scanned = bytes.size();
    }
    seen_ = scanned - start;
    return start;
  }

  void reset(bool) override { seen_ = 0; }

 private:
  char terminator_;
  std::size_t seen_ = 0;  // leading bytes of the next call that hold no terminator
  Positions positions_;
};

// Follows the quotes: only quotes and newlines can change its state, so that the fields in between
// cost nothing.
class CsvSplitter final : public Splitter {
 public:
  explicit CsvSplitter(char delimiter) : delimiter_(delimiter) {}

  std::size_t split(std::string_view bytes, bool last, std::size_t most,
                    std::vector<Record>& out) override {
    assert(seen_ <= bytes.size());
    std::size_t start = 0;
    std::size_t scanned = seen_;
    while (most > 0 && scanned < bytes.size()) {
      const std::size_t base = scanned;
      const Scan scan = find_all(bytes.data() + base, bytes.size() - base, {'\n', kQuote},
                                 std::min(most, kScanPositions), positions_.data());
      for (std::size_t i = 0; i < scan.found; ++i) {
        const std::size_t at = base + positions_[i];
        if (bytes[at] == kQuote) {
          follow_quote(bytes.substr(start), at - start);
        } else if (!quoted_) {
          out.push_back(finish(bytes.data() + start, at - start));
          start = at + 1;
          --most;
        }
      }
      scanned += scan.scanned;
    }
    if (last && most > 0 && start < bytes.size()) {
      out.push_back({bytes.data() + start, bytes.size() - start, bytes.size() - start});
      start = scanned = bytes.size();
      ended_quoted_ = quoted_;
      forget_record();
    }
    seen_ = scanned - start;
    return start;
  }

  void reset(bool at_front) override {
    seen_ = 0;
    first_ = at_front;
    ended_quoted_ = false;
    forget_record();
  }

  bool ended_quoted() const noexcept override { return ended_quoted_; }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-2);

  void follow_quote(std::string_view record, std::size_t at) {
    if (quoted_) {
      // Closed, unless the next byte is a quote too: that one opens it again.
      quoted_ = false;
      closed_at_ = at;
    } else {
      quoted_ = at == 0 || record[at - 1] == delimiter_ || closed_at_ + 1 == at ||
                (first_ && at == kByteOrderMark.size() && record.starts_with(kByteOrderMark));
    }
  }

  void forget_record() {
    quoted_ = false;
    closed_at_ = kNowhere;
  }

  Record finish(const char* start, std::size_t newline) {
    forget_record();
    first_ = false;
    const bool crlf = newline > 0 && start[newline - 1] == '\r';
    return {start, newline - (crlf ? 1 : 0), newline + 1};
  }

  char delimiter_;
  bool first_ = true;  // in the first record of an input, before which there may be a mark
  bool quoted_ = false;
  bool ended_quoted_ = false;
  std::size_t closed_at_ = kNowhere;  // where in this record the last quoted part closed
  std::size_t seen_ = 0;
  Positions positions_;
};

}  // namespace

std::unique_ptr<Splitter> make_splitter(const Format& format) {
  switch (format.kind) {
    case Format::Kind::nul:
      return std::make_unique<LineSplitter>('\0');
    case Format::Kind::csv:
    case Format::Kind::tsv:
      return std::make_unique<CsvSplitter>(csv_delimiter(format));
    case Format::Kind::lines:
    case Format::Kind::json:
      break;
  }
  return std::make_unique<LineSplitter>('\n');
}

}  // namespace sluice
