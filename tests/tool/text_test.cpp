#include "cli/text.hpp"
#include "cli/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace stela::tool::text_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ToolText, ShowsEscapeSequences) {
  EXPECT_EQ(in_one_line("plain"), "plain");
  EXPECT_EQ(in_one_line("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(in_one_line("a\nb\tc\r"), "a\\x0ab\\x09c\\x0d");
  EXPECT_EQ(in_one_line("\xc2\x9b"
                        "31m"),
            "\\u009b31m");
  EXPECT_EQ(in_one_line("\xe2\x80\xaegnp.exe"), "\\u202egnp.exe");
  EXPECT_EQ(in_one_line("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(in_one_line("Zoë ✓"), "Zoë ✓");
  EXPECT_EQ(in_lines("a\nb\x1b"), "a\nb\\x1b");
}

TEST(ToolText, KeepsJsonTheSameValue) {
  EXPECT_EQ(safe_json("{\"a\":\"\x7f\xc2\x9b\"}"), "{\"a\":\"\\u007f\\u009b\"}");
  EXPECT_EQ(safe_json("{\"a\":9223372036854775807}"), "{\"a\":9223372036854775807}");
}

TEST(ToolText, SpreadsJsonOverLines) {
  EXPECT_EQ(indented_json(R"({"a":[1,{"b":"x,{\"y"}],"c":{},"d":[]})"),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{\\\"y\"\n    }\n  ],\n  \"c\": {},\n"
            "  \"d\": []\n}");
}

TEST(ToolText, HidesPasswords) {
  EXPECT_EQ(without_passwords("at postgresql://app:secret@db/shop, and"),
            "at postgresql://app:***@db/shop, and");
  EXPECT_EQ(without_passwords("postgresql://app@db/shop?password=secret&sslpassword=other"),
            "postgresql://app@db/shop?password=***&sslpassword=***");
  EXPECT_EQ(without_passwords("host=db password=secret user=app"), "host=db password=*** user=app");
  EXPECT_EQ(without_passwords("password = 'it\\'s a secret' user=app"), "password = *** user=app");
  EXPECT_EQ(without_passwords("password='a secret without an end"), "password=***");
  EXPECT_EQ(without_passwords("no password supplied; PGPASSWORD="),
            "no password supplied; PGPASSWORD=");
  EXPECT_EQ(without_passwords("password=a\\ secret user=app"), "password=*** user=app");
  EXPECT_EQ(without_passwords("password="), "password=***");
}

TEST(ToolText, HidesWhatMayBeAPasswordOfTheBroker) {
  for (const char* const url : {"nats://u:secret@host", "nats://u:secret%40host", "nats://u:secret",
                                "nats://secret%40host:4222", "tls://u:secret/host",
                                "nats://one:4222,u:secret", "nats://one:4222,nats://u:secret"}) {
    EXPECT_THAT(without_passwords("unexpected '" + std::string{url} + "' here"),
                AllOf(Not(HasSubstr("secret")), HasSubstr("***"), HasSubstr("' here")))
        << url;
  }
  for (const char* const text :
       {"nats://one:4222", "connecting to nats://one:4222: Timeout; connecting to nats://[::1]:1",
        "nats://one:4222,two:4222, nats://three", "the broker at nats://127.0.0.1:1.",
        "nats://one/ is connected"}) {
    EXPECT_EQ(without_passwords(text), text);
  }
}

TEST(ToolText, WritesTimesAndSizesWithUnits) {
  EXPECT_EQ(in_words(0us), "0 µs");
  EXPECT_EQ(in_words(850us), "850 µs");
  EXPECT_EQ(in_words(3120us), "3.1 ms");
  EXPECT_EQ(in_words(12ms), "12 ms");
  EXPECT_EQ(in_words(3250ms), "3.2 s");
  EXPECT_EQ(in_words(312s), "5 min 12 s");
  EXPECT_EQ(in_words(2h), "2 h");
  EXPECT_EQ(in_words(98h), "4 d 2 h");
  EXPECT_EQ(in_words(-5s), "-5.0 s");
  EXPECT_EQ(in_bytes(512), "512 B");
  EXPECT_EQ(in_bytes(1536), "1.5 KiB");
  EXPECT_EQ(in_bytes(std::int64_t{20} << 20), "20.0 MiB");
  EXPECT_EQ(in_digits(0), "0");
  EXPECT_EQ(in_digits(999), "999");
  EXPECT_EQ(in_digits(1234567), "1,234,567");
  EXPECT_EQ(in_digits(-1234), "-1,234");
  EXPECT_EQ(in_digits(9223372036854775807), "9,223,372,036,854,775,807");
}

TEST(ToolText, ReadsTimes) {
  EXPECT_EQ(parse_duration("15s"), 15s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_FALSE(parse_duration("20")) << "of what?";
  EXPECT_FALSE(parse_duration("0"));
  EXPECT_FALSE(parse_duration(""));
  EXPECT_FALSE(parse_duration("-1s"));
  EXPECT_FALSE(parse_duration("15 parsecs"));
  EXPECT_FALSE(parse_duration("inf"));
  EXPECT_FALSE(parse_duration("1e300s"));
}

TEST(ToolTable, PutsLongValuesBeneathTheirRow) {
  Table table{
      {{"NAME"}, {.title = "STATE", .most = 10}, {"OWNER"}, {.title = "ERROR", .most = 20}}};
  table.add({"p00", "ok", "somebody", ""});
  table.add({"p01", "backing off", "somebody", "no room"});
  EXPECT_THAT(table.lines(std::string::npos),
              ::testing::ElementsAre(
                  "NAME  STATE       OWNER     ERROR", "p00   ok          somebody",
                  "p01   " + cut_to("backing off", 10) + "  somebody  no room", "    backing off"));
  EXPECT_THAT(table.lines(20), ::testing::Contains("    no room"));
  EXPECT_THAT(table.lines(20), ::testing::Contains("    backing off"));
}

TEST(ToolText, CutsAtColumnsNotBytes) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  EXPECT_EQ(width_of("Zoë"), 3U);
  EXPECT_EQ(width_of("日本"), 4U);
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdefg", 6), "abcde…");
  EXPECT_EQ(cut_to("日本語", 4), "日…");
  EXPECT_EQ(cut_to("abc", 0), "");
}

}  // namespace
}  // namespace stela::tool::text_test
