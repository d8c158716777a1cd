#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/stream/record.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice {
namespace {

struct Piece {
  std::string body;
  std::string terminator;
  bool operator==(const Piece&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Piece& piece) {
  return to << testing::PrintToString(piece.body) << "+"
            << testing::PrintToString(piece.terminator);
}

// Feeds `text` as a reader does: what is left moves to a new place with more bytes behind it.
std::vector<Piece> split_in_pieces(Format format, const std::string& text,
                                   const std::vector<std::size_t>& cuts, std::size_t most) {
  const auto splitter = make_splitter(format);
  std::vector<Piece> pieces;
  std::size_t start = 0;
  for (std::size_t cut = 0; cut <= cuts.size(); ++cut) {
    const bool last = cut == cuts.size();
    const std::size_t end = last ? text.size() : std::max(start, cuts[cut]);
    while (true) {
      const std::string buffer = text.substr(start, end - start);
      std::vector<Record> records;
      const std::size_t taken = splitter->split(buffer, last, most, records);
      std::size_t sum = 0;
      for (const Record& record : records) {
        pieces.push_back({std::string(record.text()),
                          std::string(record.data + record.body, record.whole - record.body)});
        sum += record.whole;
      }
      EXPECT_EQ(sum, taken);
      EXPECT_LE(records.size(), most);
      start += taken;
      if (records.size() < most) break;
    }
  }
  EXPECT_EQ(start, text.size());
  return pieces;
}

// A byte at a time, with the whole text in hand.
std::vector<Piece> reference_lines(const std::string& text, char terminator) {
  std::vector<Piece> pieces;
  std::string body;
  for (const char byte : text) {
    if (byte == terminator) {
      pieces.push_back({body, std::string(1, terminator)});
      body.clear();
    } else {
      body += byte;
    }
  }
  if (!body.empty()) pieces.push_back({body, ""});
  return pieces;
}

std::vector<Piece> reference_csv(const std::string& text, char delimiter) {
  std::vector<Piece> pieces;
  std::string body;
  enum { at_start, plain, quoted, maybe_closed } state = at_start;
  for (const char byte : text) {
    if (byte == '\n' && state != quoted) {
      const bool crlf = !body.empty() && body.back() == '\r';
      if (crlf) body.pop_back();
      pieces.push_back({body, crlf ? "\r\n" : "\n"});
      body.clear();
      state = at_start;
      continue;
    }
    body += byte;
    switch (state) {
      case quoted:
        if (byte == '"') state = maybe_closed;
        break;
      case maybe_closed:
        state = byte == '"' ? quoted : byte == delimiter ? at_start : plain;
        break;
      case at_start:
      case plain:
        state = byte == delimiter ? at_start : byte == '"' && state == at_start ? quoted : plain;
        break;
    }
  }
  if (!body.empty()) pieces.push_back({body, ""});
  return pieces;
}

std::vector<Piece> reference(Format format, const std::string& text) {
  switch (format.kind) {
    case Format::Kind::nul:
      return reference_lines(text, '\0');
    case Format::Kind::csv:
      return reference_csv(text, ',');
    case Format::Kind::tsv:
      return reference_csv(text, '\t');
    default:
      return reference_lines(text, '\n');
  }
}

class EveryFormat : public testing::TestWithParam<Format::Kind> {};

TEST_P(EveryFormat, AnyCutGivesTheReferenceRecords) {
  const Format format{.kind = GetParam()};
  const bool held = rc::check([&] {
    using rc::gen::arbitrary;
    // Mostly what has a meaning somewhere: doubled quotes before a newline must not be rare.
    const auto byte =
        rc::gen::weightedOneOf<char>({{8, rc::gen::element('\n', '\0', '"', '"', ',', '\t', '\r')},
                                      {1, arbitrary<char>()},
                                      {1, rc::gen::just('x')}});
    const auto text = *rc::gen::container<std::string>(byte);
    auto cuts = *rc::gen::container<std::vector<std::size_t>>(
        rc::gen::inRange<std::size_t>(0, text.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    const auto most = *rc::gen::inRange<std::size_t>(1, 6);
    RC_ASSERT(split_in_pieces(format, text, cuts, most) == reference(format, text));
  });
  EXPECT_TRUE(held);
}

TEST_P(EveryFormat, LongInputsEqualTheReference) {
  const Format format{.kind = GetParam()};
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += "field " + std::to_string(i) + (i % 7 == 0 ? ",\"quoted, \"\"x\"\"\n\"," : ",plain");
    text += i % 3 == 0 ? std::string("\r\n\0", 3) : "\n";
  }
  for (const std::size_t most : {1u, 100u, 512u, 100000u})
    EXPECT_EQ(split_in_pieces(format, text, {100, 1000, 50000}, most), reference(format, text));
}

TEST_P(EveryFormat, ResetForgetsTheUnfinishedRecord) {
  const auto splitter = make_splitter({.kind = GetParam()});
  std::vector<Record> records;
  EXPECT_EQ(splitter->split("\"unfinished", false, 9, records), 0u);
  splitter->reset(true);
  const std::string_view next("a\n\0", 3);
  splitter->split(next, true, 9, records);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].data, next.data());
  EXPECT_LE(records[0].body, 2u);
}

// A record of n pieces costs n looks at a piece, not n^2: terminators put where the splitter has
// looked before are not found, since it does not look there again.
TEST_P(EveryFormat, LongRecordIsScannedOnce) {
  constexpr std::size_t kPieceBytes = 1000;
  std::string text(100 * kPieceBytes, 'x');
  text += std::string("\n\0", 2);
  const auto splitter = make_splitter({.kind = GetParam()});
  std::vector<Record> records;
  for (std::size_t end = kPieceBytes; end < text.size(); end += kPieceBytes) {
    ASSERT_EQ(splitter->split(std::string_view(text.data(), end), false, 512, records), 0u);
    text[end - 500] = GetParam() == Format::Kind::nul ? '\0' : '\n';
  }
  splitter->split(text, true, 1, records);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_GT(records[0].whole, 100 * kPieceBytes);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat,
                         testing::Values(Format::Kind::lines, Format::Kind::nul, Format::Kind::csv,
                                         Format::Kind::tsv, Format::Kind::json));

TEST(CsvSplitter, QuotesAfterAByteOrderMarkOnlyInTheFirstRecord) {
  const Format csv{.kind = Format::Kind::csv};
  const std::vector<Piece> want = {{"\xEF\xBB\xBF\"a\nb\"", "\n"}, {"\xEF\xBB\xBF\"c", "\n"}};
  EXPECT_EQ(split_in_pieces(csv, "\xEF\xBB\xBF\"a\nb\"\n\xEF\xBB\xBF\"c\n", {2, 5}, 512), want);
}

TEST(CsvSplitter, KeepsQuotedNewlinesAndDropsTheCarriageReturn) {
  const Format csv{.kind = Format::Kind::csv};
  const std::vector<Piece> want = {
      {"a,\"b\n\"\"c\"", "\r\n"}, {"", "\n"}, {"d\"e", "\n"}, {"\"\"\"\"", "\n"}, {"\"open\n", ""}};
  EXPECT_EQ(split_in_pieces(csv, "a,\"b\n\"\"c\"\r\n\nd\"e\n\"\"\"\"\n\"open\n", {}, 512), want);
}

}  // namespace
}  // namespace sluice
