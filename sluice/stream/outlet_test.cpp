#include "sluice/stream/outlet.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/text_ends.hpp"

namespace sluice {
namespace {

using testing_support::TextSink;

// Records of a text that is readable past its end; each ends with a newline but perhaps the last.
struct Batch {
  explicit Batch(const std::string& lines) : text(lines + std::string(kPaddingBytes, '#')) {
    std::size_t start = 0;
    while (start < lines.size()) {
      const std::size_t newline = lines.find('\n', start);
      const std::size_t body = std::min(newline, lines.size()) - start;
      const std::size_t whole = newline == std::string::npos ? body : body + 1;
      records.push_back({text.data() + start, body, whole});
      start += whole;
    }
  }
  std::string text;
  std::vector<Record> records;
};

const auto kAll = [](std::size_t) { return true; };

TEST(Outlet, HandsOverOnlyWhenFlushed) {
  TextSink sink;
  Outlet outlet(&sink, '\n');
  const Batch batch("a\nb\n");
  outlet.write_kept(batch.records, kAll);
  EXPECT_EQ(sink.text, "");
  EXPECT_EQ(outlet.bytes(), 4u);
  outlet.flush();
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nb\n");
  EXPECT_EQ(sink.writes, 1);
}

TEST(Outlet, WritesWhatIsKeptInOrder) {
  TextSink sink;
  Outlet outlet(&sink, '\n');
  const Batch batch("0\n1\n\n3\n" + std::string(500, '4') + "\n5\n");
  outlet.write_kept(batch.records, [](std::size_t i) { return i % 2 == 0; });
  outlet.flush();
  EXPECT_EQ(sink.text, "0\n\n" + std::string(500, '4') + "\n");
  EXPECT_EQ(outlet.bytes(), sink.text.size());
}

TEST(Outlet, AMissingTerminatorIsOwedToTheNextRecordOnly) {
  TextSink sink;
  Outlet outlet(&sink, '\n');
  const Batch open("a\nb"), next("c\nd");
  outlet.write_kept(open.records, kAll);
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nb");
  // Nothing of this batch is kept, so that nothing is owed yet.
  outlet.write_kept(next.records, [](std::size_t) { return false; });
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nb");
  outlet.write_kept(next.records, kAll);
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nb\nc\nd");
  EXPECT_EQ(outlet.bytes(), sink.text.size());
}

TEST(Outlet, AnOpenEndThatIsNotKeptOwesNothing) {
  TextSink sink;
  Outlet outlet(&sink, '\0');
  const Batch open("a\nb"), next("c\n");
  outlet.write_kept(open.records, [](std::size_t i) { return i == 0; });
  outlet.write_kept(next.records, kAll);
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nc\n");
}

TEST(Outlet, TheTerminatorIsTheFormats) {
  TextSink sink;
  Outlet outlet(&sink, '\0');
  const Batch open("a"), next("b");
  outlet.write_kept(open.records, kAll);
  outlet.write_kept(next.records, kAll);
  outlet.flush();
  EXPECT_EQ(sink.text, std::string("a\0b", 3));
}

// More than the buffer holds, in records around the sizes where the way of copying changes.
TEST(Outlet, AnySizeGoesThrough) {
  for (const std::size_t size : {1u, 63u, 64u, 65u, 1000u, 262142u, 262143u, 262144u, 600000u}) {
    TextSink sink;
    Outlet outlet(&sink, '\n');
    std::string lines;
    while (lines.size() < 700000) lines += std::string(size - 1, 'x') + "\n";
    const Batch batch(lines);
    outlet.write_kept(batch.records, kAll);
    outlet.flush();
    EXPECT_EQ(sink.text, lines) << size;
    EXPECT_EQ(outlet.bytes(), lines.size());
  }
}

TEST(Outlet, TwoBuffersKeepTheOrder) {
  TextSink sink;
  Outlet outlet(&sink, '\n');
  const Batch first("a\nb\n"), second("c\n"), third("d\n");
  outlet.write_kept(first.records, kAll);
  outlet.use_buffer(1);
  EXPECT_EQ(sink.text, "a\nb\n");
  outlet.write_kept(second.records, kAll);
  outlet.use_buffer(1);
  EXPECT_EQ(sink.writes, 1);
  outlet.use_buffer(0);
  outlet.write_kept(third.records, kAll);
  outlet.flush();
  EXPECT_EQ(sink.text, "a\nb\nc\nd\n");
}

TEST(Outlet, WithoutASinkNothingHappens) {
  Outlet outlet(nullptr, '\n');
  const Batch batch("a\nb");
  outlet.write_kept(batch.records, kAll);
  outlet.write(batch.records[0]);
  outlet.flush();
  EXPECT_FALSE(outlet.has_sink());
  EXPECT_EQ(outlet.bytes(), 0u);
}

}  // namespace
}  // namespace sluice
