#include "tools/kiln_gen/flags_page.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/strings.h"

namespace kiln::gen {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(FlagsPage, HasTheConnectedFlagsOnly) {
  const std::string page = FlagsPage("made", flags::AllFlags(), flags::OtherVariables());
  for (const flags::FlagInfo& flag : flags::AllFlags()) {
    EXPECT_EQ(
        Count(page, Cat("\n| `--", flag.name, "=")) + Count(page, Cat("\n| `--", flag.name, "`")),
        flag.is_connected ? 1 : 0)
        << flag.name;
    for (const flags::Spelling& spelling : flag.spellings) {
      const std::string name =
          spelling.name.empty() ? NameOf(spelling.variable) : Cat("--", spelling.name);
      EXPECT_EQ(Count(page, Cat("`", name, "`")) > 0, flag.is_connected) << name;
    }
  }
}

TEST(FlagsPage, ShowsAFlagWhenItIsConnected) {
  std::vector<flags::FlagInfo> table(flags::AllFlags().begin(), flags::AllFlags().end());
  for (flags::FlagInfo& flag : table) flag.is_connected = flag.name == "min_cluster_size";
  std::string page = FlagsPage("made", table, {});
  EXPECT_NE(page.find("## Sessions"), std::string::npos);
  EXPECT_NE(page.find("| `--min_cluster_size=N` | `4` | `--tf_xla_min_cluster_size` in "
                      "`TF_XLA_FLAGS` | "),
            std::string::npos);
  EXPECT_EQ(page.find("## Compilations"), std::string::npos);
  for (flags::FlagInfo& flag : table) flag.is_connected = false;
  page = FlagsPage("made", table, {});
  EXPECT_EQ(page.find("## Sessions"), std::string::npos);
}

}  // namespace
}  // namespace kiln::gen
