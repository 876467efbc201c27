class RoundtableTui < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/roundtable-tui-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/roundtable-tui-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/roundtable-tui-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/roundtable-tui-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "bin/roundtable"
    man1.install "share/man/man1/roundtable.1"
    bash_completion.install "share/bash-completion/completions/roundtable"
    zsh_completion.install "share/zsh/site-functions/_roundtable"
    fish_completion.install "share/fish/vendor_completions.d/roundtable.fish"
    doc.install Dir["share/doc/roundtable-tui/*"]
  end

  test do
    system bin/"roundtable", "run", "checkout-launch", "--instant", "--format", "text"
  end
end
