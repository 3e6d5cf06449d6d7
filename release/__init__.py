"""What a release needs: the build and its checks (`make dist`), and the pictures of README."""
