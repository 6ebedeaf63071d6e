"builtin.module"() ({
  "x.of \22quotes\22 and\0Alines"() {"a\5C" = @"no word"} : () -> ()
}) : () -> ()
