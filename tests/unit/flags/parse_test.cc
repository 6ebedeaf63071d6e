#include "flags/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "flags/table.h"
#include "support/labels.h"

namespace kiln::flags {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Parsed> ParseOf(const Variables& variables) {
  return Parse([&](const char* name) -> std::optional<std::string> {
    auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

Parsed Kiln(const std::string& text) {
  Result<Parsed> parsed = ParseOf({{"KILN_FLAGS", text}});
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().ToString();
  return parsed.ok() ? *parsed : Parsed{};
}

std::string ErrorOf(const std::string& text) {
  Result<Parsed> parsed = ParseOf({{"KILN_FLAGS", text}});
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument) << text;
  return std::string(parsed.status().message());
}

TEST(Flags, DefaultsAreTensorFlows) {
  const SessionFlags session = Kiln("").flags.session;
  EXPECT_EQ(session.auto_jit, 0);
  EXPECT_EQ(session.min_cluster_size, 4);
  EXPECT_EQ(session.max_cluster_size, INT32_MAX);
  EXPECT_EQ(session.clustering_fuel, INT64_MAX);
  EXPECT_TRUE(session.enable_lazy_compilation);
  EXPECT_FALSE(session.async_compilation || session.cpu_global_jit || session.compile_on_demand ||
               session.enable_xla_devices || session.clustering_debug ||
               session.deterministic_cluster_names);
  EXPECT_TRUE(session.ops_to_cluster.empty() && session.cluster_exclude_ops.empty());
}

TEST(Flags, TheSyntaxIsAbseils) {
  EXPECT_EQ(Kiln("--dump_to=a").flags.compile.dump_to, "a");
  EXPECT_EQ(Kiln(" \t\n-dump_to=a=b\r\n").flags.compile.dump_to, "a=b");
  EXPECT_EQ(Kiln("--dump_to=\"a b\\\"c\\\\\" --verify").flags.compile.dump_to, "a b\"c\\");
  EXPECT_EQ(Kiln("--dump_to='a \\\"b'").flags.compile.dump_to, "a \\\"b");
  EXPECT_EQ(Kiln("--dump_to=").flags.compile.dump_to, "");
  EXPECT_EQ(Kiln("--dump_to=a --dump_to=b").flags.compile.dump_to, "b");
  EXPECT_TRUE(Kiln("--verify").flags.compile.verify);
  EXPECT_TRUE(Kiln("--verify=TRUE").flags.compile.verify);
  EXPECT_FALSE(Kiln("--verify --noverify").flags.compile.verify);
  EXPECT_FALSE(Kiln("--verify=1 --verify=0").flags.compile.verify);
  EXPECT_EQ(Kiln("--disabled_passes=dce,,\"cse\"").flags.compile.disabled_passes,
            (List{"dce", "\"cse\""}));
  EXPECT_EQ(Kiln("--disabled_passes=' dce, cse '").flags.compile.disabled_passes,
            (List{"dce", "cse"}));
  EXPECT_EQ(Kiln("--auto_jit=-1").flags.session.auto_jit, -1);
  EXPECT_EQ(Kiln("--log_level=off").flags.context.log_level, Level::kOff);
  EXPECT_TRUE(Kiln("--dump_hlo_pass_re=^fu.ion$").flags.compile.dump_hlo_pass_re.Matches("fusion"));
}

TEST(Flags, MistakesInKilnFlagsAreErrors) {
  EXPECT_EQ(ErrorOf("--dump_too=x"),
            "KILN_FLAGS: there is no flag '--dump_too'; the nearest is --dump_to");
  EXPECT_EQ(ErrorOf("--xla_dump_to=x"),
            "KILN_FLAGS: there is no flag '--xla_dump_to'; the nearest is --dump_to");
  EXPECT_EQ(ErrorOf("--tf_xla_auto_jit=2"),
            "KILN_FLAGS: there is no flag '--tf_xla_auto_jit'; the nearest is --auto_jit");
  EXPECT_EQ(ErrorOf("--nodump_to"),
            "KILN_FLAGS: there is no flag '--nodump_to'; the nearest is --dump_to");
  EXPECT_EQ(ErrorOf("--dump_to"), "KILN_FLAGS: --dump_to needs a value, as in --dump_to=value");
  EXPECT_EQ(ErrorOf("--verify=maybe"), "KILN_FLAGS: --verify is 'maybe'; expected true or false");
  EXPECT_EQ(ErrorOf("--noverify=1"), "KILN_FLAGS: --noverify has a value; expected none");
  EXPECT_EQ(ErrorOf("--auto_jit=3"),
            "KILN_FLAGS: --auto_jit is '3'; expected an integer of at least -1 and at most 2");
  EXPECT_EQ(ErrorOf("--clustering_fuel=1e9"),
            "KILN_FLAGS: --clustering_fuel is '1e9'; expected an integer of at least 0");
  EXPECT_EQ(ErrorOf("--log_level=loud"),
            "KILN_FLAGS: --log_level is 'loud'; expected info, warning, error, off");
  EXPECT_EQ(ErrorOf("--verify dump"), "KILN_FLAGS: 'dump': a flag begins with --");
  EXPECT_EQ(ErrorOf("--dump_to='a b"), "KILN_FLAGS: '--dump_to='a b': a quote has no end");
  EXPECT_EQ(ErrorOf("--dump_to='a'b"),
            "KILN_FLAGS: '--dump_to='a'b': white space must follow a closing quote");
  EXPECT_EQ(ErrorOf("--"), "KILN_FLAGS: '--': the flag has no name");
  EXPECT_EQ(ErrorOf("--a+b"), "KILN_FLAGS: '--a+b': a name has letters, digits, - and _");
  EXPECT_EQ(ErrorOf("--verify=1 /no/such/file"),
            "KILN_FLAGS: '/no/such/file': a flag begins with --");
}

TEST(Flags, BadRegularExpressionsAreExplained) {
  EXPECT_EQ(ErrorOf("--dump_hlo_pass_re=a("),
            "KILN_FLAGS: --dump_hlo_pass_re is refused: the regular expression 'a(' is malformed: "
            "a parenthesis has no partner, or a repetition has no item");
  for (const char* bad : {"[", "*", "a{2", "\\", "[z-a]", "(a)\\1", "[[:kind:]]", "a{1000000}"}) {
    EXPECT_NE(ErrorOf(Cat("--dump_hlo_module_re='", bad, "'")).find("malformed"), std::string::npos)
        << bad;
  }
  EXPECT_NE(ErrorOf(Cat("--dump_hlo_module_re=", std::string(2000, 'a'))).find("2000 characters"),
            std::string::npos);
}

TEST(Flags, RegularExpressionsTakeLinearTime) {
  Result<Regex> regex = Regex::Compile("(a*)*b");
  ASSERT_TRUE(regex.ok()) << regex.status().ToString();
  EXPECT_FALSE(regex->Matches(std::string(20000, 'a')));
  EXPECT_TRUE(regex->Matches(std::string(20000, 'a') + "b"));
  regex = Regex::Compile("^step.*7$");
  ASSERT_TRUE(regex.ok());
  EXPECT_TRUE(regex->Matches("step_17"));
  EXPECT_FALSE(regex->Matches("a_step_17"));
  regex = Regex::Compile("a|^b");
  ASSERT_TRUE(regex.ok());
  EXPECT_TRUE(regex->Matches("\n\xff a"));
  EXPECT_TRUE(regex->Matches("b"));
  EXPECT_FALSE(regex->Matches("cb"));
  EXPECT_FALSE(Regex::Compile("a)|(?:b").ok());
  EXPECT_FALSE(Regex().Matches(""));
  EXPECT_TRUE(Regex::Compile("")->empty());
}

TEST(Flags, OtherVariablesBelongToOthersToo) {
  Result<Parsed> parsed =
      ParseOf({{"XLA_FLAGS",
                "--xla_gpu_autotune_level=0 --xla_dump_to=x file --xla_dump_hlo_as_dot "
                "--tf_xla_auto_jit=1 --xla_dump_hlo_pass_re=(?i)a"},
               {"TF_XLA_FLAGS", "--xla_generate_hlo_graph=.* --tf_xla_auto_jit=fusible"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.compile.dump_to, "x");
  EXPECT_TRUE(parsed->flags.compile.dump_hlo_as_dot);
  EXPECT_TRUE(parsed->flags.compile.dump_hlo_pass_re.empty());
  EXPECT_EQ(parsed->flags.compile.generate_hlo_graph.text(), ".*");
  EXPECT_EQ(parsed->flags.session.auto_jit, 0);
  std::vector<std::string> warnings, others;
  for (const Message& m : parsed->messages) (m.is_warning ? warnings : others).push_back(m.text);
  EXPECT_EQ(others,
            (std::vector<std::string>{
                "XLA_FLAGS: ignored: there is no flag '--xla_gpu_autotune_level'",
                "XLA_FLAGS: ignored: there is no flag '--tf_xla_auto_jit'; TF_XLA_FLAGS has it"}));
  ASSERT_EQ(warnings.size(), 3);
  EXPECT_EQ(warnings[0],
            "TF_XLA_FLAGS: ignored: --tf_xla_auto_jit is 'fusible'; expected an integer of at "
            "least -1 and at most 2");
  EXPECT_EQ(warnings[1], "XLA_FLAGS: ignored: 'file': a flag begins with --");
  EXPECT_NE(warnings[2].find("XLA_FLAGS: ignored: --xla_dump_hlo_pass_re is refused"),
            std::string::npos);
}

TEST(Flags, KilnFlagsGoBeforeTheOthers) {
  Result<Parsed> parsed =
      ParseOf({{"KILN_FLAGS", "--dump_to=kiln"}, {"XLA_FLAGS", "--xla_dump_to=xla"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.compile.dump_to, "kiln");
  parsed = ParseOf({{"TF_DUMP_GRAPH_PREFIX", "/a b"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.session.dump_graph_prefix, "/a b");
}

TEST(Flags, TheFolderOfTheCacheIsAVariable) {
  Result<Parsed> parsed = ParseOf({{"KILN_CACHE", "/a b"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.context.cache_folder, "/a b");
  parsed = ParseOf({{"KILN_CACHE", "/a"}, {"KILN_FLAGS", "--cache_folder=/b --cache_bytes=7"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.context.cache_folder, "/b");
  EXPECT_EQ(parsed->flags.context.cache_bytes, 7);
  parsed =
      ParseOf({{"KILN_CACHE", "/a"}, {"TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory=/c"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.context.cache_folder, "/a");
  EXPECT_NE(ErrorOf("--cache_bytes=-1").find("at least 0"), std::string::npos);
}

// A flag that would do nothing must not be accepted in silence.
TEST(Flags, WhatNothingReadsIsReported) {
  for (const FlagInfo& flag : AllFlags()) {
    Flags defaults;
    // Any value that is valid.
    std::string value = ValueText(flag, defaults);
    if (value.empty()) value = flag.name == "log_level" ? "info" : "x";
    for (const Spelling& spelling : flag.spellings) {
      const std::string text = spelling.name.empty() ? value : Cat("--", spelling.name, "=", value);
      Result<Parsed> parsed = ParseOf({{NameOf(spelling.variable), text}});
      ASSERT_TRUE(parsed.ok());
      EXPECT_EQ(parsed->messages.size(), flag.is_connected ? 0 : 1) << text;
    }
    const Parsed parsed = Kiln(Cat("--", flag.name, "=", value));
    ASSERT_EQ(parsed.messages.size(), flag.is_connected ? 0 : 1) << flag.name;
    if (flag.is_connected) continue;
    EXPECT_TRUE(parsed.messages[0].is_warning);
    EXPECT_EQ(parsed.messages[0].text,
              Cat("KILN_FLAGS: the flag --", flag.name, " is not supported yet"));
  }
}

TEST(Flags, NamesAreUnique) {
  for (const FlagInfo& flag : AllFlags()) {
    EXPECT_EQ(FindFlag(Variable::kKilnFlags, flag.name), &flag);
    EXPECT_FALSE(flag.name.starts_with("no")) << flag.name;
    EXPECT_TRUE(flag.documentation.ends_with(".")) << flag.name;
    for (const Spelling& s : flag.spellings) EXPECT_EQ(FindFlag(s.variable, s.name), &flag);
  }
}

TEST(Flags, AFileHoldsFlags) {
  const std::string path = Cat(::testing::TempDir(), "kiln_flags_", ::getpid());
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("--xla_dump_to=a\n--xla_dump_hlo_as_text\n", file);
  std::fclose(file);
  Result<Parsed> parsed = ParseOf({{"XLA_FLAGS", path}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->flags.compile.dump_to, "a");
  EXPECT_TRUE(parsed->flags.compile.dump_hlo_as_text);
  EXPECT_EQ(ErrorOf(path),
            "KILN_FLAGS: there is no flag '--xla_dump_to'; the nearest is --dump_to");
  std::remove(path.c_str());
  EXPECT_EQ(ErrorOf("/no/such"), "KILN_FLAGS: the file '/no/such' of flags cannot be opened");
  EXPECT_EQ(ErrorOf("/"), "KILN_FLAGS: the file '/' of flags cannot be read");
  EXPECT_NE(ErrorOf("/dev/zero").find("more than"), std::string::npos);
  parsed = ParseOf({{"XLA_FLAGS", "/no/such"}});
  ASSERT_TRUE(parsed.ok() && parsed->messages.size() == 1);
  EXPECT_TRUE(parsed->messages[0].is_warning);
  EXPECT_TRUE(ParseOf({{"KILN_FLAGS", " \n"}}).ok());
}

// Any bytes are an error or flags; never a crash, and an error keeps its form.
TEST(Flags, MutatedTextIsAnErrorOrFlags) {
  constexpr std::string_view kPieces[] = {"--",        "-",
                                          "=",         "\"",
                                          "'",         "\\",
                                          " ",         "\n",
                                          "no",        "true",
                                          "dump_to",   "verify",
                                          "auto_jit",  "dump_hlo_pass_re",
                                          "log_level", "(",
                                          ")",         "[a-",
                                          "*",         "{9}",
                                          ".*",        "2",
                                          "-1",        "99999999999999999999",
                                          "info",      "\xff",
                                          "\0x"};
  std::mt19937 random(7);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text =
        round % 2 ? "--dump_to=\"a b\" --noverify --auto_jit=2 --log_level=info" : "";
    const size_t edits = below(8);
    for (size_t i = 0; i < edits; ++i) {
      const size_t at = below(text.size() + 1);
      if (below(3) == 0) {
        text.erase(at, below(4));
      } else {
        text.insert(at, kPieces[below(std::size(kPieces))]);
      }
    }
    // A name of a file is not what this is about.
    if (!text.empty() && text[0] != '-') text.insert(0, "--");
    Result<Parsed> parsed = ParseOf({{"KILN_FLAGS", text}});
    accepted += parsed.ok();
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
      EXPECT_TRUE(parsed.status().message().starts_with("KILN_FLAGS: ")) << text;
      EXPECT_LT(parsed.status().message().size(), 400);
    }
    // The others take everything.
    EXPECT_TRUE(ParseOf({{"XLA_FLAGS", text}, {"TF_XLA_FLAGS", text}}).ok()) << text;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

KILN_LABEL(text, "Flags");

}  // namespace
}  // namespace kiln::flags
