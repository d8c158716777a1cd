#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/stream/csv.hpp"
#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> csv(std::vector<std::string> keys, const std::string& header = "") {
  auto extractor = make_key_extractor({.kind = Format::Kind::csv, .header = !header.empty()}, keys);
  if (!header.empty()) extractor->set_header({header.data(), header.size(), header.size()});
  return extractor;
}

TEST(CsvKeys, WithoutKeysQuotesThatChangeNothingDoNotCount) {
  const auto all = csv({});
  EXPECT_EQ(key_of(*all, "\"a\",b"), key_of(*all, "a,b"));
  EXPECT_EQ(key_of(*all, "a,b").bytes, "a,b");
  EXPECT_EQ(key_of(*all, "\"\""), key_of(*all, ""));
  EXPECT_NE(key_of(*all, "\"a,b\""), key_of(*all, "a,b"));
  EXPECT_NE(key_of(*all, "\"\"\"a\"\"\""), key_of(*all, "\"a\""));
  EXPECT_EQ(key_of(*all, "\"a\"\"b\""), key_of(*all, "a\"b"));
}

TEST(CsvKeys, ColumnsByNameAndNumber) {
  const std::string header = "id,\"last, first\",2,name";
  EXPECT_EQ(key_of(*csv({"name"}, header), "1,2,3,4").bytes, "4");
  EXPECT_EQ(key_of(*csv({"last, first"}, header), "1,2,3,4").bytes, "2");
  EXPECT_EQ(key_of(*csv({"2"}, header), "1,2,3,4").bytes, "3") << "a name goes before a number";
  EXPECT_EQ(key_of(*csv({"1"}, header), "1,2,3,4").bytes, "1");
  EXPECT_EQ(key_of(*csv({"name,id"}, header), "1,2,3,4").bytes,
            "\1"
            "4\1"
            "1");
  EXPECT_EQ(key_of(*csv({"name", "last, first"}, header), "1,2,3,4").bytes,
            "\1"
            "4\1"
            "2");
  EXPECT_EQ(key_of(*csv({"3"}), "1,2,3,4").bytes, "3");
}

TEST(CsvKeys, AByteOrderMarkIsNoPartOfTheFirstName) {
  EXPECT_EQ(key_of(*csv({"id"}, "\xEF\xBB\xBFid,x"), "7,8").bytes, "7");
  EXPECT_EQ(key_of(*csv({"id"}, "\xEF\xBB\xBF\"id\",x"), "7,8").bytes, "7");
}

TEST(CsvKeys, AHeaderWithAnotherDelimiterIsRefused) {
  EXPECT_NE(bad_parameters([] { csv({"name"}, "id;name;x"); }).find("`delimiter` ';'"),
            std::string::npos);
  EXPECT_NE(bad_parameters([] { csv({"1"}, "id\tname"); }).find("`delimiter` '\\t'"),
            std::string::npos)
      << "a number, too";
  EXPECT_EQ(key_of(*csv({"id"}, "id"), "7").bytes, "7") << "one column is a table";
  EXPECT_EQ(key_of(*csv({}, "id;name"), "7;8").bytes, "7;8") << "whole records lose nothing";
  const std::string header = "id;name";
  const std::vector<std::string> first = {"1"};
  const auto given = make_key_extractor({.kind = Format::Kind::csv, .delimiter = ','}, first);
  given->set_header({header.data(), header.size(), header.size()});
  EXPECT_EQ(key_of(*given, "7;8").bytes, "7;8") << "it was said to be so";
}

TEST(CsvKeys, UnknownColumnsAreListed) {
  const std::string message = bad_parameters([] { csv({"nam"}, "id,name"); });
  EXPECT_NE(message.find("'nam'"), std::string::npos);
  EXPECT_NE(message.find("'id', 'name'"), std::string::npos);
  bad_parameters([] { csv({"3"}, "id,name"); });
  bad_parameters([] { csv({"id,nam"}, "id,name"); });
  EXPECT_NE(bad_parameters([] { csv({"name"}); }).find("counted from 1"), std::string::npos);
}

TEST(CsvKeys, QuotedFieldsAreUnquoted) {
  const auto second = csv({"2"});
  EXPECT_EQ(key_of(*second, "x,\"a,b\",y").bytes, "a,b");
  EXPECT_EQ(key_of(*second, "x,\"a \"\"b\"\"\n\"").bytes, "a \"b\"\n");
  EXPECT_EQ(key_of(*second, "x,\"\"").bytes, "");
  EXPECT_EQ(key_of(*second, "x,a\"b").bytes, "a\"b");
}

TEST(CsvKeys, StatusOfShortAndBrokenRecords) {
  const auto second = csv({"2"});
  EXPECT_EQ(key_of(*second, "x"), kMissing);
  EXPECT_EQ(key_of(*second, ""), kMissing);
  EXPECT_EQ(key_of(*second, "x,y,\"open"), kMalformed);
  EXPECT_EQ(key_of(*second, "x,y,\"closed\"z"), kMalformed);
  EXPECT_EQ(key_of(*csv({}), "\"open"), kMalformed);
}

TEST(CsvKeys, AnotherInputMayOrderItsColumnsOtherwise) {
  const auto id = csv({"id"}, "id,x");
  const std::string header = "x,id";
  id->set_header({header.data(), header.size(), header.size()});
  EXPECT_EQ(key_of(*id, "1,2").bytes, "2");
}

TEST(CsvKeys, TabsAndOtherDelimiters) {
  const std::vector<std::string> second = {"2"};
  const Format tsv{.kind = Format::Kind::tsv, .header = false};
  EXPECT_EQ(key_of(*make_key_extractor(tsv, second), "a,b\t\"c\"").bytes, "c");
  const Format semicolon{.kind = Format::Kind::csv, .header = false, .delimiter = ';'};
  EXPECT_EQ(key_of(*make_key_extractor(semicolon, second), "a,b;c").bytes, "c");
  bad_parameters([&] { make_key_extractor({.kind = Format::Kind::csv, .delimiter = '"'}, {}); });
}

// The cutter of padded records against the plain reader: the same fields, and the same verdict on
// broken ones, however long the record is.
RC_GTEST_PROP(CsvKeysProperty, CuttersEqualTheReader, ()) {
  const auto piece = rc::gen::element<std::string>("a", ",", "\"", "\"\"", ",\"", "\",", "\n",
                                                   std::string(61, 'b'), std::string(130, 'c'));
  std::string record;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece))
    record += part;
  const auto most = *rc::gen::inRange<std::size_t>(1, 9);
  std::vector<CsvField> expected, fields(most);
  const bool sound = split_fields(record, ',', most, expected);
  const std::string padded = record + std::string(kPaddingBytes, '"');
  const std::size_t count =
      CsvCutter(',').cut(std::string_view(padded).substr(0, record.size()), fields);
  RC_ASSERT((count != kMalformedRecord) == sound);
  if (!sound) return;
  RC_ASSERT(count == expected.size());
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(fields[i].text == expected[i].text);
    RC_ASSERT(fields[i].doubled == expected[i].doubled);
  }
}

// However fields are quoted, records have one key if and only if their fields are the same.
RC_GTEST_PROP(CsvKeysProperty, QuotingNeverChangesTheKey, ()) {
  const auto bytes = rc::gen::element('a', ',', '"', '\n', ' ');
  const auto values = rc::gen::resize(
      5, rc::gen::nonEmpty(
             rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(bytes))));
  const auto one = *values;
  const auto two = *values;
  const auto spell = [](const std::vector<std::string>& fields, bool always) {
    std::string record;
    for (const std::string& field : fields) {
      if (&field != &fields.front()) record += ',';
      const bool quotes = always || field.find_first_of(",\"\n") != std::string::npos;
      if (quotes) record += '"';
      for (const char byte : field) record += byte == '"' ? "\"\"" : std::string(1, byte);
      if (quotes) record += '"';
    }
    return record;
  };
  const auto all = csv({});
  RC_ASSERT(key_of(*all, spell(one, true)) == key_of(*all, spell(one, false)));
  RC_ASSERT((key_of(*all, spell(one, false)) == key_of(*all, spell(two, true))) == (one == two));
  const auto last = csv({std::to_string(one.size())});
  RC_ASSERT(key_of(*last, spell(one, true)).bytes == one.back());
}

}  // namespace
}  // namespace sluice
